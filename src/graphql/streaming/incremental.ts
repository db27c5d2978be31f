import type { IncrementalFormat, RemainingResults } from '../../execution/types.ts';
import { EVENT_STREAM, type Framing, JSON_LINES, multipartMixed } from '../../http/stream.ts';
import { type StreamType, streamTypesOf } from '../../live/stream-formats.ts';

/** The formats of an incremental response. */
interface IncrementalResponse {
  readonly format: IncrementalFormat;
  readonly framing: Framing;
}

const part = (parameters: string): Framing => multipartMixed({ boundary: '-', parameters });
const PLAIN_PARTS = part('');

/** The parameters of `multipart/mixed` that name a format, with their responses. */
const NAMED_FORMATS: Readonly<Record<string, Readonly<Record<string, IncrementalResponse>>>> = {
  incrementalspec: {
    'v0.2': { format: 'v0.2', framing: part('incrementalSpec=v0.2') },
    'v0.1': { format: '20220824', framing: part('incrementalSpec=v0.1') },
  },
  deferspec: { 20220824: { format: '20220824', framing: part('deferSpec=20220824') } },
};

/**
 * Returns the response for the preferred type of an `Accept` header; undefined if it names no incremental
 * one.
 */
export function incrementalResponse(
  accept: string | undefined,
  defaultFormat: IncrementalFormat,
): IncrementalResponse | undefined {
  for (const type of streamTypesOf(accept ?? '')) {
    const response = responseOf(type, defaultFormat);
    if (response !== undefined) return response;
  }
  return undefined;
}

function responseOf(
  { format: media, parameters }: StreamType,
  format: IncrementalFormat,
): IncrementalResponse | undefined {
  if (media === 'event-stream') return { format, framing: EVENT_STREAM };
  if (media === 'json-lines') return { format, framing: JSON_LINES };
  if (parameters.has('subscriptionspec')) return undefined;
  for (const [name, formats] of Object.entries(NAMED_FORMATS)) {
    const version = parameters.get(name);
    if (version !== undefined) return Object.hasOwn(formats, version) ? formats[version] : undefined;
  }
  return { format, framing: PLAIN_PARTS };
}

/** The payloads of an incremental response, from the first one. */
export function allPayloads(first: string, rest: RemainingResults): AsyncIterable<string> {
  let isFirst = true;
  return {
    [Symbol.asyncIterator]: () => ({
      next() {
        // The execution of deferred parts begins with the first call of `rest.next`, after the first payload
        // was sent.
        if (!isFirst) return rest.next();
        isFirst = false;
        return Promise.resolve({ done: false, value: first });
      },
      return: () => rest.return(),
    }),
  };
}
