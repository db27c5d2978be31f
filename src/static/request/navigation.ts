import type { IncomingMessage } from 'node:http';
import { extname } from 'node:path';
import { lookup } from 'mime-types';

const HTML_TYPE = /(?:^|,)\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*(?:,|$))[^,]*)?(?=,|$)/i;

/** Whether a path may belong to a page: paths with the extension of an asset are not treated as pages. */
export function mayBePage(path: string): boolean {
  const type = lookup(extname(path));
  return type === false || type === 'text/html' || type === 'application/xhtml+xml';
}

/**
 * Whether a request is a page navigation: the browser says so (`Sec-Fetch-Mode: navigate`), or `Accept` names
 * `text/html`, which browsers send for pages but not for scripts, styles or images.
 */
export function isNavigation(req: IncomingMessage): boolean {
  return req.headers['sec-fetch-mode'] === 'navigate' || HTML_TYPE.test(req.headers.accept ?? '');
}
