import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import { createWarningLog, debug, writeLog } from '../diagnostics/logging.ts';
import {
  codeOf,
  destroyIncomplete,
  errorName,
  type Headers,
  isAborted as isConnectionLost,
  removeLifetime,
  toError,
  writeReply,
} from '../http/reply.ts';
import { pathOf } from '../http/routing.ts';
import { isObject } from '../options/values.ts';
import type { StaticSettings } from './options.ts';
import { encodePath, requestedPath, segmentOf } from './path.ts';
import type { Metadata } from './representation.ts';

export interface RequestTriple {
  readonly req: ConnectRequest;
  readonly res: ServerResponse;
  readonly next: NextFunction;
}

/** What a file has about its lifetime: its `Cache-Control`, and names and values that rules add. */
export interface LifetimeHeaders {
  readonly cacheControl: string | undefined;
  readonly added?: readonly string[] | undefined;
}

/** A request for a file, as the steps of its response see it. */
export interface FileRequest extends RequestTriple {
  /** What the cache knows about the URL path, or about the fallback page. */
  readonly entry: { readonly urlPath: string; readonly isCheckedSync: boolean };
  readonly context: {
    readonly settings: StaticSettings;
    /** Called before the headers of a file are set whose lifetime the request limits. */
    readonly limitLifetime?:
      | ((req: ConnectRequest, res: ServerResponse, file: LifetimeHeaders) => void)
      | undefined;
  };
  /** The headers of a file that is not at the path that was asked for, which are those of both. */
  readonly inPlace: Partial<Metadata> | undefined;
  /** The status of the response: 404 for the page of the option `notFound`, or a status that other code has set. */
  status: number;
}

/** Whether other code has responded or the client has disconnected. */
export function isFinished(res: ServerResponse): boolean {
  return res.headersSent || res.writableEnded || isClientGone(res);
}

/** Whether the client has disconnected. In the HTTP/2 compatibility API the socket is then missing or destroyed. */
export function isClientGone(res: ServerResponse): boolean {
  return isConnectionLost(res) || ('stream' in res && res.socket?.destroyed !== false);
}

/** Passes an exception to the application. Destroys the response if its headers have been sent. */
export function failResponse({ res, next }: RequestTriple, error: unknown): void {
  if (res.headersSent) destroyIncomplete(res, error);
  else next(toError(error));
}

/** The reason why a request gets no file. */
export interface NotServed {
  /** For the debug log; never sent to the client. */
  readonly reason: string;
  /** The status of the error for `next`; 404 by default. */
  readonly status?: 400 | 403 | 404;
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
  const members = { status, statusCode: status, expose: error === undefined };
  const passed = Object.assign(new Error(message), error, members);
  // As in `http-errors`, which `send` uses: an error of the file system keeps its name.
  const name = { value: errorName(status), configurable: true, writable: true };
  return error === undefined ? Object.defineProperty(passed, 'name', name) : passed;
}

const SAFE_QUERY = /^\?[\x21-\x7e]*$/;

/**
 * Redirects to the requested path with a slash; false if it has one already. The location is relative and consists of one
 * segment, so it cannot lead to another host, whatever the request line contains. A browser must ask again: the folder may go.
 */
export function redirectToSlash(request: Pick<RequestTriple, 'req' | 'res'>): boolean {
  const segment = segmentOf(requestedPath(request.req));
  if (/^\.{0,2}$/.test(segment)) return false;
  const location = `./${encodeURIComponent(segment)}/${queryOf(request.req)}`;
  sendStatus(request, 301, { Location: location, 'Cache-Control': 'no-cache' });
  return true;
}

/** The query that the client sent, with its question mark; empty if it is none that a header can have. */
function queryOf({ url = '', originalUrl = url }: ConnectRequest): string {
  const [query = ''] = /\?.*/s.exec(originalUrl) ?? [];
  return SAFE_QUERY.test(query) ? query : '';
}

// Folders of a path that a redirect leads out of: a longer reference could exceed the limits of clients.
const MAX_LEVELS = 64;

/**
 * A reference from the requested path to a path below the mount. It is relative, so that it is right behind every proxy and leads
 * to no other host. Undefined if middleware has given the request another path.
 */
export function referenceTo(
  target: string,
  { url = '', originalUrl = url }: ConnectRequest,
): string | undefined {
  const below = pathOf(url);
  let levels = -1;
  for (let at = below.indexOf('/'); at >= 0; at = below.indexOf('/', at + 1)) levels++;
  if (levels < 0 || levels > MAX_LEVELS) return undefined;
  if (originalUrl !== url && !pathOf(originalUrl).endsWith(below)) return undefined;
  return (levels === 0 ? './' : '../'.repeat(levels)) + target.slice(1);
}

/**
 * Redirects to a URL, or to an encoded path below the mount; false if that cannot be named. A browser must ask again: it would
 * keep the redirect after the site has turned it around.
 */
export function redirectTo(
  request: Pick<RequestTriple, 'req' | 'res'>,
  { to, status, hasQuery = false }: { to: string; status: number; hasQuery?: boolean },
): boolean {
  const reference = to.startsWith('/') ? referenceTo(to, request.req) : to;
  if (reference === undefined) return false;
  const [, target = '', fragment = ''] = /^([^#]*)(.*)$/.exec(reference) ?? [];
  const location = `${target}${hasQuery ? '' : queryOf(request.req)}${fragment}`;
  sendStatus(request, status, { Location: location, 'Cache-Control': 'no-cache' });
  return true;
}

/** Redirects to another path below the mount, with the query of the request. */
export const redirectBelowMount = (request: Pick<RequestTriple, 'req' | 'res'>, urlPath: string): boolean =>
  redirectTo(request, { to: encodePath(urlPath), status: 308 });

/** Responds with a status and its name, or another text that contains nothing from the request. */
export function sendStatus(
  { req, res }: Pick<RequestTriple, 'req' | 'res'>,
  status: number,
  headers: Headers = {},
  text: string | undefined = STATUS_CODES[status],
): void {
  removeContentHeaders(res);
  res.removeHeader('Content-Location');
  if (status >= 400) removeFileHeaders(res);
  const common = { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' };
  writeReply(req, res, { status, headers: { ...common, ...headers }, body: `${text}\n` });
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

/** Removes what other code has set for the file, from an error. */
export function removeFileHeaders(res: ServerResponse): void {
  removeLifetime(res);
  res.removeHeader('Content-Disposition');
}

/** Removes headers that describe the file, from a response without it (RFC 9110 §15.4.5). */
export function removeContentHeaders(res: ServerResponse): void {
  for (const name of ['Encoding', 'Language', 'Length', 'Range', 'Type']) res.removeHeader(`Content-${name}`);
}

/** Reports a problem of the system as a process warning. An equal message is repeated at most once a minute. */
export const warnOfSystem: (error: Error) => void = createWarningLog({
  owner: 'staticFiles',
  type: 'StaticWarning',
  code: 'ESPALIER_STATIC',
});
