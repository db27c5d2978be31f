import type { IncomingMessage } from 'node:http';
import { extname } from 'node:path';
import { lookup } from 'mime-types';

const HTML_TYPE = /(?:^|,)\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*(?:,|$))[^,]*)?(?=,|$)/i;

/**
 * Whether a request is for a page: browsers say so in `Sec-Fetch-Mode`, others by asking for HTML by name. A path
 * that ends like a script, an image or another known asset is none.
 */
export function isNavigation(req: IncomingMessage, path: string): boolean {
  const type = lookup(extname(path));
  if (type !== false && type !== 'text/html' && type !== 'application/xhtml+xml') return false;
  const mode = req.headers['sec-fetch-mode'];
  if (mode !== undefined) return mode === 'navigate';
  return HTML_TYPE.test(req.headers.accept ?? '');
}
