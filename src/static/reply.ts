import { type OutgoingHttpHeaders, ServerResponse, STATUS_CODES } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import { createWarningLog, debug, writeLog } from '../diagnostics/logging.ts';
import {
  addVary,
  codeOf,
  destroyIncomplete,
  type Headers,
  isAborted as isConnectionLost,
  toError,
  writeReply,
} from '../http/reply.ts';
import { isObject } from '../options/rules.ts';
import type { StaticSettings } from './options.ts';
import type { HeaderList } from './representation.ts';
import type { RequestTriple } from './respond.ts';

/** Whether other code has responded or the client has disconnected. */
export function isFinished(res: ServerResponse): boolean {
  return res.headersSent || res.writableEnded || isAborted(res);
}

/** Passes an exception to the application. Destroys the response if its headers have been sent. */
export function failResponse({ res, next }: RequestTriple, error: unknown): void {
  if (res.headersSent) destroyIncomplete(res, error);
  else next(toError(error));
}

/**
 * Names of headers that earlier middleware has set, in lower case; undefined if the response is unchanged.
 */
export type PresetHeaders = readonly string[] | undefined;

/**
 * Returns the headers that are already set. A replaced `writeHead` may set headers at the last moment, and
 * older versions of on-headers (morgan, compression, sessions) corrupt a flat list of headers, so such a
 * response counts as changed.
 */
export function presetHeadersOf(res: ServerResponse): PresetHeaders {
  const names = res.getHeaderNames();
  const isUntouched = names.length === 0 && res.writeHead === ServerResponse.prototype.writeHead;
  return isUntouched ? undefined : names;
}

/**
 * Sets the status and the headers. Keeps headers that are already set, except framing headers of the body.
 */
export function setResponseHeaders(
  res: ServerResponse,
  status: number,
  headers: HeaderList,
  preset: readonly string[] = res.getHeaderNames(),
): void {
  res.statusCode = status;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    const value = headers[i + 1] as string;
    if (name === 'Vary') addVary(res, value);
    else if (isFraming(name) || !preset.includes(name.toLowerCase())) res.setHeader(name, value);
  }
}

/** Removes headers that describe the file, from a response without it (RFC 9110 §15.4.5). */
export function removeContentHeaders(res: ServerResponse): void {
  for (const name of ['Encoding', 'Language', 'Length', 'Range', 'Type']) res.removeHeader(`Content-${name}`);
}

/** The status and the headers of a response that was not sent yet. */
interface ResponseHead {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
}

/** Restores an earlier status and earlier headers of a response. */
export function restoreHead(res: ServerResponse, { status, headers }: ResponseHead): void {
  res.statusCode = status;
  for (const name of res.getHeaderNames()) res.removeHeader(name);
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) res.setHeader(name, value);
}

/** Writes the status and the headers in the cheapest form that is safe for this response. */
export function writeHeaders(
  res: ServerResponse,
  status: number,
  headers: HeaderList,
  preset: PresetHeaders,
): void {
  if (preset === undefined) res.writeHead(status, headers as string[]);
  else setResponseHeaders(res, status, headers, preset);
}

function isFraming(name: string): boolean {
  return name === 'Content-Length' || name === 'Content-Range' || name === 'Content-Encoding';
}

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

/** The `next` of a server without a framework: a 404, or the status of the error. */
export function endWithout(req: ConnectRequest, res: ServerResponse): NextFunction {
  return (error) => {
    if (res.headersSent) {
      destroyIncomplete(res, error);
      return;
    }
    const { status: given } = isObject(error) ? error : {};
    const status = typeof given === 'number' && STATUS_CODES[given] !== undefined ? given : 500;
    if (error !== undefined && status >= 500) writeLog('error', 'a request for a file failed', error);
    sendStatus({ req, res }, error === undefined ? 404 : status);
  };
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

/** Responds with a status and its name as the body, which contains nothing from the request. */
export function sendStatus(
  { req, res }: Pick<RequestTriple, 'req' | 'res'>,
  status: number,
  headers: Headers = {},
): void {
  removeContentHeaders(res);
  const body = `${STATUS_CODES[status]}\n`;
  const common = { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' };
  writeReply(req, res, { status, headers: { ...common, ...headers }, body });
}

/** Responds with 503 when a file keeps changing: the client may retry soon. */
export function sendUnavailable(request: Pick<RequestTriple, 'req' | 'res'>): void {
  sendStatus(request, 503, { 'Retry-After': '1' });
}

/** Responds with 503 when descriptors or memory ran out, and warns the operator. */
export function sendOutOfResources(request: Pick<RequestTriple, 'req' | 'res'>, error: unknown): void {
  const reason = `clients get 503 because a file cannot be read (${codeOf(error)})`;
  warnOfSystem(
    new Error(`${reason}; raise the limit of open files (ulimit -n), or the memory of the process`),
  );
  sendUnavailable(request);
}

/**
 * Whether the client has disconnected. In the HTTP/2 compatibility API the socket is then missing or
 * destroyed.
 */
export function isAborted(res: ServerResponse): boolean {
  return isConnectionLost(res) || ('stream' in res && res.socket?.destroyed !== false);
}

/** Reports a problem of the system as a process warning. An equal message is repeated at most once a minute. */
export const warnOfSystem: (error: Error) => void = createWarningLog({
  owner: 'staticFiles',
  type: 'StaticWarning',
  code: 'ESPALIER_STATIC',
});
