const ORIGIN = /^https?:\/\/[^/?#]*/i;

/** The path of a request target, `''` where a mount has stripped all of it; an absolute one too (RFC 9112 §3.2.2). */
export function pathOf(url = '/'): string {
  const origin = url[0] === '/' ? undefined : ORIGIN.exec(url)?.[0];
  const path = origin === undefined ? url : url.slice(origin.length);
  const end = path.search(/[?#]/);
  return end === -1 ? path : path.slice(0, end);
}
