const ORIGIN = /^https?:\/\/[^/?#]*/i;

/**
 * Returns the path of a request target, also of an absolute one (RFC 9112 §3.2.2); `''` if a mount has
 * stripped all of it.
 */
export function pathOf(url = '/'): string {
  const origin = url[0] === '/' ? undefined : ORIGIN.exec(url)?.[0];
  const path = origin === undefined ? url : url.slice(origin.length);
  const end = path.search(/[?#]/);
  return end === -1 ? path : path.slice(0, end);
}

/** Removes one slash at the end of a path. */
export const withoutSlash = (path: string): string => (path.endsWith('/') ? path.slice(0, -1) : path);

/** Decodes the percent-encoding of a part of a URL; undefined if it is malformed. */
export function decodePart(encoded: string): string | undefined {
  if (!encoded.includes('%')) return encoded;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

/** Whether a parameter of a URL has a name, as the application reads it, that passes a test. */
export function hasParameter(url: string, test: (name: string) => boolean): boolean {
  let from = url.indexOf('?') + 1;
  let equals = 0;
  while (from > 0 && from < url.length) {
    const next = url.indexOf('&', from);
    const end = next === -1 ? url.length : next;
    // Searched again only behind the last one, so that the time is linear in the length of the URL.
    if (equals !== -1 && equals < from) equals = url.indexOf('=', from);
    const name = url.slice(from, equals === -1 || equals > end ? end : equals);
    if (from < end && test(decodePart(name) ?? name)) return true;
    from = end + 1;
  }
  return false;
}
