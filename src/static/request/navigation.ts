import type { IncomingMessage } from 'node:http';
import { extname } from 'node:path';
import { lookup } from 'mime-types';

const HTML_TYPE = /(?:^|,)\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*(?:,|$))[^,]*)?(?=,|$)/i;

/** Whether a path may be a page's: one that ends like a known asset is none. */
export function mayBePage(path: string): boolean {
  const type = lookup(extname(path));
  return type === false || type === 'text/html' || type === 'application/xhtml+xml';
}

/**
 * Whether a request is for a page: a browser's navigation (`Sec-Fetch-Mode`), or one that asks for HTML by name, which
 * no script, style or image does.
 */
export function isNavigation(req: IncomingMessage): boolean {
  return req.headers['sec-fetch-mode'] === 'navigate' || HTML_TYPE.test(req.headers.accept ?? '');
}
