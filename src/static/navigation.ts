import type { IncomingMessage } from 'node:http';
import { extname } from 'node:path';
import { lookup } from 'mime-types';

const HTML_TYPE = /(?:^|,)\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*(?:,|$))[^,]*)?(?=,|$)/i;

/**
 * Whether a request is for a page: a browser's navigation (`Sec-Fetch-Mode`), or one that asks for HTML by name, which
 * no script, style or image does. A path that ends like a known asset is none.
 */
export function isNavigation(req: IncomingMessage, path: string): boolean {
  const type = lookup(extname(path));
  if (type !== false && type !== 'text/html' && type !== 'application/xhtml+xml') return false;
  return req.headers['sec-fetch-mode'] === 'navigate' || HTML_TYPE.test(req.headers.accept ?? '');
}
