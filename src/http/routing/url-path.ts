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
