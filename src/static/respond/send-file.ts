import { parseHttpDate } from '../../http/conditions/date.ts';
import { checkPreconditions, rangeIsCurrent, type Validators } from '../../http/conditions/preconditions.ts';
import { type ByteRange, parseRanges } from '../../http/conditions/ranges.ts';
import { parseAcceptEncoding } from '../../http/negotiation/accept-encoding.ts';
import { isWriteReplaced } from '../../http/reply/response-writer.ts';
import { formatValue } from '../../options/format-value.ts';
import { isThenable } from '../../options/rules.ts';
import { isCompressibleType } from '../compression/media-types.ts';
import { warnOfSystem } from '../disk/warning.ts';
import type { CreatedCodings, DeltaCodings, LoadedFile, SelectionRules } from '../file/loaded-file.ts';
import type { Metadata, Representation } from '../file/representation.ts';
import { type PresetHeaders, presetHeadersOf, writeHeaders } from './headers.ts';
import type { RequestContext, StreamPlan } from './request-context.ts';
import { sendNotFoundPage, sendRanges, sendWhole } from './send-body.ts';
import { sendStatus } from './send-status.ts';

/** The codings of middleware that compresses responses. */
const CODINGS = ['gzip', 'br', 'deflate', 'zstd'];

/**
 * Responds to a GET or HEAD with a file: content coding, preconditions, ranges, body.
 *
 * @returns undefined when the response is complete, otherwise the plan of a stream
 */
export function sendFile(request: RequestContext, file: LoadedFile): StreamPlan | undefined {
  const { req, res } = request;
  const { setHeaders } = request.context.settings;
  if (setHeaders !== undefined && file.stats !== undefined) {
    const returned: unknown = setHeaders(res, file.uncompressed.path, file.stats);
    if (isThenable(returned)) returned.then(undefined, warnOfRejection);
  }
  const preset = presetHeadersOf(res);
  const representation =
    (file.deltas && selectDelta(request, file, file.deltas, preset)) ??
    (file.createdCodings === undefined
      ? negotiateCoding(file, req.headers['accept-encoding'])
      : selectCreated(request, file, file.createdCodings, preset));
  if (representation !== undefined) return sendRepresentation(request, representation, preset);
  sendStatus(request, 406, { Vary: 'Accept-Encoding' });
  return undefined;
}

/** An async `setHeaders` is not awaited. Its rejection must not end the process, as an unhandled one does. */
function warnOfRejection(cause: unknown): void {
  const reason = cause instanceof Error ? String(cause) : formatValue(cause);
  warnOfSystem(new Error(`the promise of the option "setHeaders" was rejected: ${reason}`, { cause }));
}

/** Selects a coding with a dictionary; undefined for most requests. */
function selectDelta(
  request: RequestContext,
  file: LoadedFile,
  deltas: DeltaCodings,
  preset: PresetHeaders,
): Representation | undefined {
  return request.status === 404 ? undefined : deltas.select(request.req, rulesFor(request, file, preset));
}

function selectCreated(
  request: RequestContext,
  file: LoadedFile,
  createdCodings: CreatedCodings,
  preset: PresetHeaders,
): Representation | undefined {
  const selected = createdCodings.select(request.req, rulesFor(request, file, preset));
  return selected === undefined ? file.uncompressed : selected === 'none' ? undefined : selected;
}

function rulesFor(
  { status }: RequestContext,
  { uncompressed }: LoadedFile,
  preset: PresetHeaders,
): SelectionRules {
  const hasOtherEtag = status === 404 || preset?.includes('etag') === true;
  return { hasOtherEtag, acceptsRanges: uncompressed.metadata.acceptRanges };
}

function sendRepresentation(
  request: RequestContext,
  representation: Representation,
  preset: PresetHeaders,
): StreamPlan | undefined {
  const { req, res } = request;
  if (request.status === 404) return sendNotFoundPage(request, representation, preset);
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
  { res }: RequestContext,
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
  { req, res }: RequestContext,
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
  return CODINGS.some((name) => weightOf(name) > 0);
}
