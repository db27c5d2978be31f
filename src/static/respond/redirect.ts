import type { ConnectRequest } from '../../../types/connect.ts';
import type { RequestTriple } from './request-context.ts';
import { sendStatus } from './send-status.ts';

const SAFE_QUERY = /^\?[\x21-\x7e]*$/;
const SAFE_SEGMENT = /^[\w\-.~%!$&'()*+,;=:@]+$/;

/**
 * Redirects to `segment/`. The location is relative and consists of one segment of a path that resolved, so
 * it cannot lead to another host, whatever the request line contains.
 */
export function redirectToSlash(request: Pick<RequestTriple, 'req' | 'res'>, segment: string): void {
  const url = request.req.url ?? '';
  const query = url.includes('?') ? url.slice(url.indexOf('?')) : '';
  sendStatus(request, 301, { Location: `./${segment}/${SAFE_QUERY.test(query) ? query : ''}` });
}

/** The last segment of a decoded URL path, percent-encoded. */
export function lastSegment(urlPath: string): string {
  return encodeURIComponent(urlPath.slice(urlPath.lastIndexOf('/') + 1));
}

/** The last segment of the mount path, if the request named the mount path without a slash at the end. */
export function mountSegmentWithoutSlash(req: ConnectRequest): string | undefined {
  const { originalUrl } = req;
  if (originalUrl === undefined || originalUrl === req.url) return undefined;
  const path = originalUrl.split('?', 1)[0] as string;
  const segment = path.slice(path.lastIndexOf('/') + 1);
  return SAFE_SEGMENT.test(segment) && !/^\.{1,2}$/.test(segment) ? segment : undefined;
}
