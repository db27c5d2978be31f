import { AsyncResource } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import {
  type ByteRange,
  checkPreconditions,
  parseHttpDate,
  parseRanges,
  rangeIsCurrent,
  type Validators,
} from '../http/conditions.ts';
import { parseAcceptEncoding } from '../http/negotiation.ts';
import { addVary, endWithBody, isResourceError, isWriteReplaced, toError } from '../http/reply.ts';
import { formatValue, isThenable } from '../options/rules.ts';
import type { Section, StreamedBody } from './body.ts';
import type { CacheEntry, FileCache, Waiter } from './cache.ts';
import type { BackgroundEtags, Coalescer } from './check.ts';
import { isCompressibleType } from './media-types.ts';
import type { StaticSettings } from './options.ts';
import { isNavigation, mayBePage } from './path.ts';
import {
  failResponse,
  isAborted,
  isFinished,
  lastSegment,
  type NotServed,
  type PresetHeaders,
  passThrough,
  presetHeadersOf,
  redirectToSlash,
  removeContentHeaders,
  sendOutOfResources,
  sendStatus,
  sendUnavailable,
  warnOfSystem,
  writeHeaders,
} from './reply.ts';
import {
  bodyHeaders,
  type HeaderList,
  type LoadedFile,
  type LoadResult,
  type Metadata,
  type Representation,
} from './representation.ts';

// Sufficient for a file that is replaced every few milliseconds, even on a busy machine.
const MAX_RETRIES = 40;

/** Responds from the cache while the entry is fresh; otherwise checks the entry first. */
export function serve(request: FileRequest): void {
  const { entry } = request;
  request.context.cache.use(entry);
  const isFresh = entry.freshUntil > 0 && entry.freshUntil > performance.now();
  if (entry.file !== undefined && isFresh) respondWithFile(request, entry.file);
  else lookUp(request, entry);
}

/**
 * Checks an entry together with all other requests for it. The coalescer then calls `onChecked`, which calls
 * `respond`.
 */
function lookUp(request: FileRequest, entry: CacheEntry): void {
  request.entry = entry;
  request.context.checker.check(request);
}

/** Responds with the result of a check. */
function respond(request: FileRequest, error: unknown, result: LoadResult | undefined): void {
  const { res, wasStarted } = request;
  if (wasStarted ? res.writableEnded || isAborted(res) : isFinished(res)) return;
  if (result === undefined) respondToError(request, error);
  else if (wasStarted && result.kind !== 'not-found') request.next(startedBefore());
  else if (result.kind === 'file') respondWithFile(request, result);
  else if (result.kind === 'busy') sendUnavailable(request);
  else if (result.kind === 'not-found') respondNotFound(request, result);
  else if (request.context.settings.redirect) redirectToSlash(request, lastSegment(request.entry.urlPath));
  else respondNotFound(request, { reason: 'a directory' });
}

/** The headers were sent before the request arrived here: without an error, the client would wait for the end. */
function startedBefore(): Error {
  const message = 'staticFiles cannot send the file: earlier middleware has started the response';
  return Object.assign(new Error(message), { code: 'ERR_HTTP_HEADERS_SENT' });
}

function respondToError(request: FileRequest, error: unknown): void {
  if (isResourceError(error) && !request.wasStarted) sendOutOfResources(request, error);
  else request.next(toError(error));
}

/** Responds to page navigations with the fallback page, or with the page for 404 responses. */
function respondNotFound(request: FileRequest, cause: NotServed): void {
  const { settings, cache } = request.context;
  const { fallback, notFound } = settings;
  const { urlPath } = request.entry;
  const page = fallback !== undefined && urlPath !== fallback && mayBePage(urlPath) ? fallback : notFound;
  if (page === undefined || page === urlPath || request.status === 404 || request.wasStarted) {
    passThrough(request, cause, settings);
    return;
  }
  // The same URL is a page for navigations and a plain 404 for other requests, and a shared cache may store
  // either.
  addVary(request.res, 'Accept, Sec-Fetch-Mode');
  if (!isNavigation(request.req)) {
    passThrough(request, cause, settings);
    return;
  }
  if (page !== fallback) request.status = 404;
  const entry = cache.getOrCreate(page);
  cache.use(entry);
  lookUp(request, entry);
}

/** Passes exceptions, for example of `setHeaders`, to the application's error handlers. */
function respondWithFile(request: FileRequest, file: LoadedFile): void {
  if (request.wasStarted) {
    request.next(startedBefore());
    return;
  }
  if (file.uncompressed.tag === undefined && needsEtag(request, file)) {
    waitForEtag(request, file);
    return;
  }
  let plan: StreamPlan | undefined;
  try {
    plan = sendFile(request, file);
  } catch (error) {
    failResponse(request, error);
    return;
  }
  if (plan !== undefined) request.context.sendBody(request, plan, () => retry(request));
}

/** Whether a condition can be decided only when the file is hashed, which happens in the background. */
function needsEtag({ req, context, hasWaitedForEtag }: FileRequest, file: LoadedFile): boolean {
  if (hasWaitedForEtag || !context.etags.isMissing(file)) return false;
  const names = ['if-match', 'if-none-match', 'if-range'] as const;
  return names.some((name) => String(req.headers[name] ?? '').includes('"'));
}

function waitForEtag(request: FileRequest, file: LoadedFile): void {
  const { res, context } = request;
  request.hasWaitedForEtag = true;
  const proceed = (): void => {
    if (!isFinished(res)) respondWithFile(request, file);
  };
  // The file has no ETag if it cannot be read.
  context.etags.complete(file, () => !isAborted(res)).then(proceed, proceed);
}

/** Checks the entry again after the file was replaced or moved between the check and the response. */
function retry(request: FileRequest): void {
  if (++request.retries > MAX_RETRIES) sendUnavailable(request);
  else {
    const entry = request.context.cache.getOrCreate(request.entry.urlPath);
    entry.pathVerifiedUntil = 0;
    lookUp(request, entry);
  }
}

/** A response whose body has to be read from the file. */
export interface StreamPlan extends StreamedBody {
  readonly representation: Representation;
  readonly status: number;
  readonly headers: HeaderList;
}

/** The state that all requests of one middleware share. */
export interface ServeContext {
  readonly settings: StaticSettings;
  readonly cache: FileCache;
  readonly checker: Coalescer;
  readonly etags: BackgroundEtags;
  /** Sends a body that is not in memory. Calls `retry` if the file has changed before anything was sent. */
  readonly sendBody: (request: FileRequest, plan: StreamPlan, retry: () => void) => void;
}

/** A request with its response and the `next` function. */
export interface RequestTriple {
  readonly req: ConnectRequest;
  readonly res: ServerResponse;
  readonly next: NextFunction;
}

/**
 * A request that is served from the cache. The coalescer calls `onChecked` after it has checked the entry.
 */
export class FileRequest implements Waiter, RequestTriple {
  readonly req: ConnectRequest;
  readonly res: ServerResponse;
  readonly next: NextFunction;
  /** The cache entry of the URL path, or of the fallback page. */
  entry: CacheEntry;
  readonly context: ServeContext;
  readonly asyncScope: AsyncResource = new AsyncResource('espalier');
  /** Whether the headers were sent before the request arrived. */
  readonly wasStarted: boolean;
  /** The status of the response: 404 for the page of the option `notFound`, or a status that other code has set. */
  status = 200;
  /** The number of changes of the file between its check and its response. */
  retries = 0;
  /** Whether the ETag of the file was computed for this request. */
  hasWaitedForEtag = false;

  constructor(
    req: ConnectRequest,
    res: ServerResponse,
    next: NextFunction,
    entry: CacheEntry,
    context: ServeContext,
  ) {
    this.req = req;
    this.res = res;
    this.next = next;
    this.entry = entry;
    this.context = context;
    this.wasStarted = res.headersSent;
  }

  onChecked(error: unknown, result: LoadResult | undefined): void {
    respond(this, error, result);
  }
}

/** The codings of middleware that compresses responses. */
const MIDDLEWARE_CODINGS = ['gzip', 'br', 'deflate', 'zstd'];

/**
 * Responds to a GET or HEAD with a file: content coding, preconditions, ranges, body.
 *
 * @returns undefined when the response is complete, otherwise the plan of a stream
 */
function sendFile(request: FileRequest, file: LoadedFile): StreamPlan | undefined {
  const { req, res } = request;
  const { setHeaders } = request.context.settings;
  const statusBefore = res.statusCode;
  if (setHeaders !== undefined && file.stats !== undefined) {
    const returned: unknown = setHeaders(res, file.uncompressed.path, file.stats);
    if (isThenable(returned)) returned.then(undefined, warnOfRejection);
  }
  const preset = presetHeadersOf(res);
  if (res.statusCode !== 200 && request.status === 200) request.status = presetStatus(request, statusBefore);
  const representation =
    file.createdCodings === undefined && file.deltas === undefined
      ? negotiateCoding(file, req.headers['accept-encoding'])
      : selectCreated(request, file, preset);
  if (representation !== undefined) return sendRepresentation(request, representation, preset);
  sendStatus(request, 406, { Vary: 'Accept-Encoding' });
  return undefined;
}

/**
 * The status that earlier middleware or `setHeaders` has set. Koa sets 404 for every request before its middleware; a request of
 * Connect and Express has an `originalUrl`.
 */
function presetStatus({ req, res }: FileRequest, statusBefore: number): number {
  const isDefaultOfKoa = statusBefore === 404 && res.statusCode === 404 && req.originalUrl === undefined;
  return isDefaultOfKoa ? 200 : res.statusCode;
}

/** An async `setHeaders` is not awaited. Its rejection must not end the process, as an unhandled one does. */
function warnOfRejection(cause: unknown): void {
  const reason = cause instanceof Error ? String(cause) : formatValue(cause);
  warnOfSystem(new Error(`the promise of the option "setHeaders" was rejected: ${reason}`, { cause }));
}

/** Selects among codings that are created while the file is served; undefined if the client accepts none. */
function selectCreated(
  { req, status }: FileRequest,
  file: LoadedFile,
  preset: PresetHeaders,
): Representation | undefined {
  const { createdCodings, deltas, uncompressed } = file;
  const hasOtherEtag = status !== 200 || preset?.includes('etag') === true;
  const rules = { hasOtherEtag, acceptsRanges: uncompressed.metadata.acceptRanges };
  const delta = status === 200 ? deltas?.select(req, rules) : undefined;
  if (delta !== undefined) return delta;
  return createdCodings === undefined
    ? negotiateCoding(file, req.headers['accept-encoding'])
    : createdCodings.select(req, rules);
}

function sendRepresentation(
  request: FileRequest,
  representation: Representation,
  preset: PresetHeaders,
): StreamPlan | undefined {
  const { req, res } = request;
  // Conditions and ranges apply to a 200 only (RFC 9110 §13.2.1).
  if (request.status !== 200) return sendOtherStatus(request, representation, preset);
  const validators = effectiveValidators(request, representation, preset);
  const result = checkPreconditions(req.headers, validators);
  if (result === 'proceed') {
    const ranges = requestedRanges(request, representation, validators);
    return ranges === undefined
      ? sendWhole(request, representation, preset)
      : sendRanges(request, representation, ranges);
  }
  if (result === 'failed') sendStatus(request, 412);
  else {
    if (preset !== undefined) removeContentHeaders(res);
    writeHeaders(res, 304, representation.headers304, preset);
    res.end();
  }
  return undefined;
}

/**
 * Selects the best coding by the client's weights, then by our order; undefined when the client accepts none.
 */
function negotiateCoding(file: LoadedFile, header: string | undefined): Representation | undefined {
  if (file.precompressed.length === 0) return file.uncompressed;
  const weightOf = parseAcceptEncoding(header);
  let best: Representation | undefined;
  let bestWeight = 0;
  for (const candidate of [...file.precompressed, file.uncompressed]) {
    const weight = weightOf(candidate.metadata.coding ?? 'identity');
    if (weight > bestWeight) {
      best = candidate;
      bestWeight = weight;
    }
  }
  return best;
}

/** Returns the ETag and date of the response, which earlier middleware or `setHeaders` may have replaced. */
function effectiveValidators(
  { res }: FileRequest,
  representation: Representation,
  preset: PresetHeaders,
): Validators {
  if (!preset?.includes('etag') && !preset?.includes('last-modified')) return representation;
  const etag = res.getHeader('ETag');
  const modified = res.getHeader('Last-Modified');
  return {
    tag: typeof etag === 'string' ? etag : representation.tag,
    modified: typeof modified === 'string' ? parseHttpDate(modified) : representation.modified,
  };
}

/**
 * Returns the ranges to send; undefined for the whole file. Range is defined for GET only (RFC 9110 §14.2).
 */
function requestedRanges(
  { req, res }: FileRequest,
  { metadata }: Representation,
  validators: Validators,
): ByteRange[] | undefined {
  const { range } = req.headers;
  if (range === undefined || !metadata.acceptRanges || req.method !== 'GET') return undefined;
  if (isWriteReplaced(res) && mayBeCompressed(metadata, req.headers['accept-encoding'])) return undefined;
  const ifRange = req.headers['if-range'];
  if (!rangeIsCurrent(typeof ifRange === 'string' ? ifRange : undefined, validators)) return undefined;
  return parseRanges(range, metadata.size);
}

/**
 * Whether a middleware that has replaced `write` may compress this body. It would compress a range on its
 * own, and a client cannot reassemble compressed ranges. Browsers accept no coding of a range.
 */
function mayBeCompressed({ coding, type }: Metadata, accepted: string | undefined): boolean {
  if (coding !== undefined) return false;
  if (/^(?:text|font)\/|[/+](?:json|javascript|xml|wasm)/.test(type)) return true;
  if (type !== 'application/octet-stream' && !isCompressibleType(type)) return false;
  const weightOf = parseAcceptEncoding(accepted);
  return MIDDLEWARE_CODINGS.some((name) => weightOf(name) > 0);
}

/** Sends a 200 from memory; otherwise returns the plan of a stream. */
function sendWhole(
  request: RequestTriple,
  representation: Representation,
  preset: PresetHeaders,
): StreamPlan | undefined {
  return sendAll(request, representation, { status: 200, headers: representation.headers200, preset });
}

/**
 * Sends a file with another status than 200, such as the page for 404 responses. Conditions and ranges do not apply, and
 * clients must revalidate it before reuse.
 */
function sendOtherStatus(
  request: FileRequest,
  representation: Representation,
  preset: PresetHeaders,
): StreamPlan | undefined {
  const { metadata } = representation;
  const headers = bodyHeaders(metadata, metadata.size, metadata.type);
  if (metadata.vary !== undefined) headers.push('Vary', metadata.vary);
  headers.push('Cache-Control', 'no-cache', 'X-Content-Type-Options', 'nosniff');
  return sendAll(request, representation, { status: request.status, headers, preset });
}

function sendAll(
  { req, res }: RequestTriple,
  representation: Representation,
  { status, headers, preset }: Pick<StreamPlan, 'status' | 'headers'> & { preset: PresetHeaders },
): StreamPlan | undefined {
  const { body, metadata } = representation;
  if (req.method === 'HEAD') {
    writeHeaders(res, status, headers, preset);
    res.end();
  } else if (body !== undefined) {
    writeHeaders(res, status, headers, preset);
    endWithBody(res, body);
  } else {
    const section = { start: 0, end: metadata.size - 1, before: undefined };
    return { representation, status, headers, sections: [section], tail: undefined };
  }
  return undefined;
}

/** Sends a 206 from memory, or a 416 when no range is satisfiable; otherwise returns the plan of a stream. */
function sendRanges(
  request: RequestTriple,
  representation: Representation,
  ranges: readonly ByteRange[],
): StreamPlan | undefined {
  const [first] = ranges;
  if (first === undefined) {
    sendStatus(request, 416, { 'Content-Range': `bytes */${representation.metadata.size}` });
    return undefined;
  }
  return ranges.length === 1
    ? sendRange(request, representation, first)
    : sendMultipart(request, representation, ranges);
}

function sendRange(
  request: RequestTriple,
  representation: Representation,
  range: ByteRange,
): StreamPlan | undefined {
  const { metadata, body } = representation;
  const { start, end } = range;
  const headers = [
    ...bodyHeaders(metadata, end - start + 1, metadata.type),
    'Content-Range',
    `bytes ${start}-${end}/${metadata.size}`,
    ...representation.headers304,
  ];
  if (body === undefined) {
    const section = { start, end, before: undefined };
    return { representation, status: 206, headers, sections: [section], tail: undefined };
  }
  sendPartial(request, headers, body.subarray(start, end + 1));
  return undefined;
}

function sendMultipart(
  request: RequestTriple,
  representation: Representation,
  ranges: readonly ByteRange[],
): StreamPlan | undefined {
  const { metadata, body } = representation;
  const multipart = buildMultipart(ranges, metadata.size, metadata.type);
  const headers = [...bodyHeaders(metadata, multipart.length, multipart.type), ...representation.headers304];
  // A Content-Type that earlier middleware set describes the file, not the multipart body.
  request.res.removeHeader('Content-Type');
  if (body === undefined) {
    const { sections, tail } = multipart;
    return { representation, status: 206, headers, sections, tail };
  }
  sendPartial(request, headers, joinSections(multipart.sections, multipart.tail, body));
  return undefined;
}

function sendPartial({ res }: RequestTriple, headers: HeaderList, body: Buffer): void {
  writeHeaders(res, 206, headers, presetHeadersOf(res));
  endWithBody(res, body);
}

/** Sends a planned response from a body that was read meanwhile. */
export function sendPlanned({ res }: RequestTriple, plan: StreamPlan, file: Buffer): void {
  const { status, headers, sections, tail } = plan;
  const [section] = sections;
  let body = file;
  if (tail !== undefined) body = joinSections(sections, tail, file);
  else if (section !== undefined && section.end - section.start + 1 < file.length)
    body = file.subarray(section.start, section.end + 1);
  writeHeaders(res, status, headers, presetHeadersOf(res));
  endWithBody(res, body);
}

/** A response body of several ranges (RFC 9110 §14.6). */
interface MultipartBody {
  readonly type: string;
  readonly length: number;
  readonly sections: readonly Section[];
  readonly tail: Buffer;
}

/**
 * Builds a `multipart/byteranges` body. The boundary is random, so that no file can contain it on purpose.
 */
function buildMultipart(ranges: readonly ByteRange[], size: number, type: string): MultipartBody {
  const boundary = randomBytes(18).toString('hex');
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  let length = tail.length;
  const sections = ranges.map(({ start, end }, index) => {
    const lines = [
      `${index === 0 ? '' : '\r\n'}--${boundary}`,
      `Content-Type: ${type}`,
      `Content-Range: bytes ${start}-${end}/${size}`,
    ];
    const before = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`);
    length += before.length + end - start + 1;
    return { before, start, end };
  });
  return { type: `multipart/byteranges; boundary=${boundary}`, length, sections, tail };
}

/** The whole multipart body, from a file in memory. */
function joinSections(sections: readonly Section[], tail: Buffer, file: Buffer): Buffer {
  const pieces = sections.flatMap(({ before, start, end }) => [
    before ?? Buffer.alloc(0),
    file.subarray(start, end + 1),
  ]);
  return Buffer.concat([...pieces, tail]);
}
