/** Returns the opaque part of a tag, without the weak prefix. */
function opaque(tag: string): string {
  return tag.startsWith('W/') ? tag.slice(2) : tag;
}

/** Whether two tags are the same and both strong (RFC 9110 §8.8.3.2). */
export function strongMatch(a: string, b: string): boolean {
  return a === b && !a.startsWith('W/');
}

/** Whether an `If-Match` list names `tag`: strong comparison. */
export function listMatchesStrongly(list: string, tag: string): boolean {
  if (tag.startsWith('W/')) return false;
  return findTag(list, (text, weak) => !weak && text === tag) !== undefined;
}

/** Whether an `If-None-Match` list names `tag`: weak comparison. */
export function listMatchesWeakly(list: string, tag: string): boolean {
  if (list === tag) return true;
  const wanted = opaque(tag);
  return findTag(list, (text) => text === wanted) !== undefined;
}

/**
 * Finds a tag of a list (RFC 9110 §8.8.3), without its weak prefix. Reads from quote to quote, since tags may contain
 * commas. Linear in the length of the list, however malformed it is.
 */
export function findTag(list: string, test: (text: string, weak: boolean) => boolean): string | undefined {
  let open = list.indexOf('"');
  while (open >= 0) {
    const close = list.indexOf('"', open + 1);
    if (close < 0) return undefined;
    const text = list.slice(open, close + 1);
    if (test(text, list.slice(open - 2, open) === 'W/')) return text;
    open = list.indexOf('"', close + 1);
  }
  return undefined;
}
