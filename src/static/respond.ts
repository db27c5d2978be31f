import { randomBytes } from 'node:crypto';
import { type OutgoingHttpHeaders, ServerResponse } from 'node:http';
import {
  type ByteRange,
  checkPreconditions,
  parseHttpDate,
  parseRanges,
  rangeIsCurrent,
  type Validators,
} from '../http/conditions.ts';
import { parseAcceptEncoding } from '../http/negotiation.ts';
import { addVary, endWithBody, isWriteReplaced, withoutLifetime } from '../http/reply.ts';
import { formatValue } from '../options/rules.ts';
import { isThenable } from '../options/values.ts';
import type { LoadedFile } from './cache.ts';
import { isCompressibleType } from './media-types.ts';
import { bodyHeaders, type HeaderList, type Metadata, type Representation } from './representation.ts';
import {
  type FileRequest,
  type RequestTriple,
  removeContentHeaders,
  removeFileHeaders,
  sendStatus,
  warnOfSystem,
} from './request.ts';
import { removeUnsafeHeaders } from './untrusted.ts';

/** A range of the file, and the bytes that precede it in the response. */
export interface Section extends ByteRange {
  readonly before: Buffer | undefined;
}

/** A response whose body has to be read from the file. */
export interface StreamPlan {
  readonly representation: Representation;
  readonly status: number;
  readonly headers: HeaderList;
  readonly sections: readonly Section[];
  /** The last bytes of a multipart body. */
  readonly tail: Buffer | undefined;
}

/** The codings of middleware that compresses responses. */
const MIDDLEWARE_CODINGS = ['gzip', 'br', 'deflate', 'zstd'];

/**
 * Responds to a GET or HEAD with a file: content coding, preconditions, ranges, body.
 *
 * @returns undefined when the response is complete, otherwise the plan of a stream
 */
export function sendFile(request: FileRequest, file: LoadedFile): StreamPlan | undefined {
  const { req, res } = request;
  const { settings, limitLifetime } = request.context;
  const { setHeaders, untrusted } = settings;
  const statusBefore = res.statusCode;
  if (setHeaders !== undefined && file.stats !== undefined) {
    const returned: unknown = setHeaders(res, file.uncompressed.path, file.stats);
    if (isThenable(returned)) returned.then(undefined, warnOfRejection);
  }
  const { metadata } = file.uncompressed;
  if (untrusted) removeUnsafeHeaders(res, metadata.added);
  limitLifetime?.(req, res, { ...metadata, ...request.inPlace });
  if (file.page?.hasNonce === false) file.page.extendPolicies(res);
  // The page of the option `notFound`, rather than a status of other code.
  if (request.status === 404 && statusBefore === 200) removeFileHeaders(res);
  const preset = presetHeadersOf(res);
  if (res.statusCode !== 200 && request.status === 200) request.status = presetStatus(request, statusBefore);
  if (file.page?.hasNonce === true)
    return void file.page.sendWithNonce(request, file.uncompressed.with(request.inPlace));
  // The bytes of a file with a Content-Encoding of other code are in this coding already.
  const representation = preset?.includes('content-encoding')
    ? file.uncompressed
    : file.createdCodings === undefined
      ? negotiateCoding(file, req.headers['accept-encoding'])
      : file.createdCodings.select(req, request.status !== 200 || preset?.includes('etag') === true);
  const shown = representation?.with(request.inPlace);
  if (shown !== undefined) return sendRepresentation(request, shown, preset);
  addVary(res, 'Accept-Encoding');
  sendStatus(request, 406);
  return undefined;
}

/** A strong ETag of other code is that of the file itself. A coding of it needs another one, or a weak one (RFC 9110 §8.8.3.3). */
function weakenEtag(res: ServerResponse): void {
  const tag = res.getHeader('ETag');
  if (typeof tag === 'string' && tag.startsWith('"')) res.setHeader('ETag', `W/${tag}`);
}

/**
 * The status that earlier middleware or `setHeaders` has set. Koa sets 404 for every request before its middleware; a request of
 * Connect and Express has an `originalUrl`.
 */
export function presetStatus({ req, res }: Omit<RequestTriple, 'next'>, statusBefore: number): number {
  const isDefaultOfKoa = statusBefore === 404 && res.statusCode === 404 && req.originalUrl === undefined;
  return isDefaultOfKoa ? 200 : res.statusCode;
}

/** An async `setHeaders` is not awaited. Its rejection must not end the process, as an unhandled one does. */
function warnOfRejection(cause: unknown): void {
  const reason = cause instanceof Error ? String(cause) : formatValue(cause);
  warnOfSystem(new Error(`the promise of the option "setHeaders" was rejected: ${reason}`, { cause }));
}

function sendRepresentation(
  request: FileRequest,
  representation: Representation,
  preset: PresetHeaders,
): StreamPlan | undefined {
  const { req, res } = request;
  if (representation.metadata.coding !== undefined && preset?.includes('etag')) weakenEtag(res);
  // Conditions and ranges apply to a 200 only (RFC 9110 §13.2.1).
  if (request.status !== 200) return sendOtherStatus(request, representation, preset);
  const validators = effectiveValidators(request, representation, preset);
  const result = checkPreconditions(req.headers, validators);
  if (result === 'proceed') {
    const ranges = requestedRanges(request, representation, validators);
    return ranges === undefined
      ? sendAll(request, representation, { status: 200, headers: representation.headers200, preset })
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

/** Selects the best coding by the client's weights, then by our order; undefined when the client accepts none. */
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

/** The type of the file, which earlier middleware or `setHeaders` may have replaced. */
const effectiveType = (res: ServerResponse, { type }: Metadata): string =>
  String(res.getHeader('Content-Type') ?? type);

/** Returns the ranges to send; undefined for the whole file. Range is defined for GET only (RFC 9110 §14.2). */
function requestedRanges(
  { req, res }: FileRequest,
  { metadata }: Representation,
  validators: Validators,
): ByteRange[] | undefined {
  const { range } = req.headers;
  if (range === undefined || !metadata.acceptRanges || req.method !== 'GET') return undefined;
  const file = { ...metadata, type: effectiveType(res, metadata) };
  if (isWriteReplaced(res) && mayBeCompressed(file, req.headers['accept-encoding'])) return undefined;
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
  if (metadata.added !== undefined) headers.push(...withoutLifetime(metadata.added, 'Content-Disposition'));
  return sendAll(request, representation, { status: request.status, headers, preset });
}

/** Sends a body from memory; otherwise returns the plan of a stream. */
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
  const plan =
    ranges.length === 1 ? rangePlan(representation, first) : multipartPlan(request, representation, ranges);
  // A Content-Type that earlier middleware set describes the parts, not the multipart body.
  if (plan.tail !== undefined) request.res.removeHeader('Content-Type');
  if (representation.body === undefined) return plan;
  sendPlanned(request, plan, representation.body);
  return undefined;
}

function rangePlan(representation: Representation, { start, end }: ByteRange): StreamPlan {
  const { metadata } = representation;
  const headers = [
    ...bodyHeaders(metadata, end - start + 1, metadata.type),
    'Content-Range',
    `bytes ${start}-${end}/${metadata.size}`,
    ...representation.headers304,
  ];
  return {
    representation,
    status: 206,
    headers,
    sections: [{ start, end, before: undefined }],
    tail: undefined,
  };
}

/**
 * Plans a `multipart/byteranges` body (RFC 9110 §14.6). The boundary is random, so that no file can contain it on purpose.
 */
function multipartPlan(
  { res }: RequestTriple,
  representation: Representation,
  ranges: readonly ByteRange[],
): StreamPlan {
  const { metadata } = representation;
  const boundary = randomBytes(18).toString('hex');
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  let length = tail.length;
  const sections = ranges.map(({ start, end }, index) => {
    const lines = [
      `${index === 0 ? '' : '\r\n'}--${boundary}`,
      `Content-Type: ${effectiveType(res, metadata)}`,
      `Content-Range: bytes ${start}-${end}/${metadata.size}`,
    ];
    const before = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`);
    length += before.length + end - start + 1;
    return { before, start, end };
  });
  const type = `multipart/byteranges; boundary=${boundary}`;
  const headers = [...bodyHeaders(metadata, length, type), ...representation.headers304];
  return { representation, status: 206, headers, sections, tail };
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

function joinSections(sections: readonly Section[], tail: Buffer, file: Buffer): Buffer {
  const pieces = sections.flatMap(({ before, start, end }) => [
    before ?? Buffer.alloc(0),
    file.subarray(start, end + 1),
  ]);
  return Buffer.concat([...pieces, tail]);
}

/** Names of headers that earlier middleware has set, in lower case; undefined if the response is unchanged. */
type PresetHeaders = readonly string[] | undefined;

/**
 * Returns the headers that are already set. A replaced `writeHead` may set headers at the last moment, and
 * older versions of on-headers (morgan, compression, sessions) corrupt a flat list of headers, so such a
 * response counts as changed.
 */
function presetHeadersOf(res: ServerResponse): PresetHeaders {
  const names = res.getHeaderNames();
  const isUntouched = names.length === 0 && res.writeHead === ServerResponse.prototype.writeHead;
  return isUntouched ? undefined : names;
}

/** Sets the status and the headers. Keeps headers that are already set, except framing headers of the body. */
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

/** Restores an earlier status and earlier headers of a response. */
export function restoreHead(
  res: ServerResponse,
  { status, headers }: { readonly status: number; readonly headers: OutgoingHttpHeaders },
): void {
  res.statusCode = status;
  for (const name of res.getHeaderNames()) res.removeHeader(name);
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) res.setHeader(name, value);
}

/** Writes the status and the headers in the cheapest form that is safe for this response. */
function writeHeaders(res: ServerResponse, status: number, headers: HeaderList, preset: PresetHeaders): void {
  if (preset === undefined) res.writeHead(status, headers as string[]);
  else setResponseHeaders(res, status, headers, preset);
}

function isFraming(name: string): boolean {
  return name === 'Content-Length' || name === 'Content-Range' || name === 'Content-Encoding';
}
