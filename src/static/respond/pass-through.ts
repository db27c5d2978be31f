import { STATUS_CODES } from 'node:http';
import { debug } from '../../logging/debug.ts';
import type { StaticSettings } from '../options.ts';
import type { RequestTriple } from './request-context.ts';

/** The reason why a request gets no file. */
export interface NotServed {
  /** For the debug log; never sent to the client. */
  readonly reason: string;
  /** The status of the error for `next`; 404 by default. */
  readonly status?: 400 | 403 | 404;
  /** The error of the file system, if there is one. */
  readonly error?: Error | undefined;
}

/** Calls `next()`. When `fallthrough` is false, it gets the error that express.static passes. */
export function passThrough(request: RequestTriple, cause: NotServed, settings: StaticSettings): void {
  debug.static('%s %j: %s', request.req.method, request.req.url, cause.reason);
  if (settings.fallthrough) request.next();
  else request.next(errorFor(cause));
}

/**
 * Creates an error with the members that `send` gives its errors: `status`, `statusCode` and `expose`, and
 * the message and `code` of the file system. Several requests may share a result, so each of them gets its
 * own error.
 */
function errorFor({ status = 404, error }: NotServed): Error {
  const message = error?.message ?? STATUS_CODES[status] ?? '';
  return Object.assign(new Error(message), error, {
    status,
    statusCode: status,
    expose: error === undefined,
  });
}
