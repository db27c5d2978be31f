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
  return some(list, (text, weak) => !weak && text === tag);
}

/** Whether an `If-None-Match` list names `tag`: weak comparison. */
export function listMatchesWeakly(list: string, tag: string): boolean {
  if (list === tag) return true;
  const wanted = opaque(tag);
  return some(list, (text) => text === wanted);
}

/**
 * Tests the tags of a list (RFC 9110 §8.8.3) from quote to quote, since tags may contain commas. Linear in
 * the length of the list, however malformed it is.
 */
function some(list: string, test: (text: string, weak: boolean) => boolean): boolean {
  let open = list.indexOf('"');
  while (open >= 0) {
    const close = list.indexOf('"', open + 1);
    if (close < 0) return false;
    if (test(list.slice(open, close + 1), list.slice(open - 2, open) === 'W/')) return true;
    open = list.indexOf('"', close + 1);
  }
  return false;
}
