import type { ByteRange } from '../../http/conditions/ranges.ts';
import { endWithBody } from '../../http/reply/response-writer.ts';
import { bodyHeaders, type HeaderList, type Representation } from '../file/representation.ts';
import { buildMultipart, joinSections } from './byteranges.ts';
import { type PresetHeaders, presetHeadersOf, writeHeaders } from './headers.ts';
import type { RequestTriple, StreamPlan } from './request-context.ts';
import { sendStatus } from './send-status.ts';

/** Sends a 200 from memory; otherwise returns the plan of a stream. */
export function sendWhole(
  request: RequestTriple,
  representation: Representation,
  preset: PresetHeaders,
): StreamPlan | undefined {
  return sendAll(request, representation, { status: 200, headers: representation.headers200, preset });
}

/**
 * Sends the page for 404 responses. Conditions and ranges do not apply, and clients must revalidate it before
 * reuse.
 */
export function sendNotFoundPage(
  request: RequestTriple,
  representation: Representation,
  preset: PresetHeaders,
): StreamPlan | undefined {
  const { metadata } = representation;
  const headers = bodyHeaders(metadata, metadata.size, metadata.type);
  if (metadata.vary !== undefined) headers.push('Vary', metadata.vary);
  headers.push('Cache-Control', 'no-cache', 'X-Content-Type-Options', 'nosniff');
  return sendAll(request, representation, { status: 404, headers, preset });
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
export function sendRanges(
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
