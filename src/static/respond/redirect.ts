import type { ConnectRequest } from '../../../types/connect.ts';
import type { Exchange } from './request-context.ts';
import { refuse } from './send-status.ts';

const SAFE_QUERY = /^\?[\x21-\x7e]*$/;
const SAFE_SEGMENT = /^[\w\-.~%!$&'()*+,;=:@]+$/;

/**
 * Sends the browser to `segment/`. The location is relative and made from one segment of a path that resolved, so it
 * can lead to no other host, whatever the request line said.
 */
export function redirectToSlash(exchange: Pick<Exchange, 'req' | 'res'>, segment: string): void {
  const url = exchange.req.url ?? '';
  const query = url.includes('?') ? url.slice(url.indexOf('?')) : '';
  refuse(exchange, 301, { Location: `./${segment}/${SAFE_QUERY.test(query) ? query : ''}` });
}

/** The last segment of a path below the mount, as it stands in a URL. */
export function lastSegment(path: string): string {
  return encodeURIComponent(path.slice(path.lastIndexOf('/') + 1));
}

/** The last segment of the mount itself, when it was asked for without a slash at the end. */
export function mountWithoutSlash(req: ConnectRequest): string | undefined {
  const original = req.originalUrl;
  if (original === undefined || original === req.url) return undefined;
  const path = original.split('?', 1)[0] as string;
  const segment = path.slice(path.lastIndexOf('/') + 1);
  return SAFE_SEGMENT.test(segment) && !/^\.{1,2}$/.test(segment) ? segment : undefined;
}
