import type { StreamProtocol } from '../../types/subscriptions.ts';
import { cacheByHeader } from '../http/negotiation.ts';
import { EVENT_STREAM, type Framing, multipartMixed } from '../http/stream.ts';
import type { Envelope } from './queue.ts';

/** The messages of one protocol of event streams. */
export interface StreamFormat {
  readonly protocol: StreamProtocol;
  readonly framing: Framing;
  /** The text around each result of the operation. */
  readonly resultEnvelope: Envelope;
  /** Returns the text around the list of errors that ends the operation, before or after its first result. */
  errorEnvelope(hasResults: boolean): Envelope;
  /** Returns a line with a cursor that precedes an event; empty if the protocol has none. */
  cursorLine(cursor: string): string;
  /**
   * Returns the message that makes the client wait for a random time before it connects again, or a message
   * without an effect. EventSource waits for a constant time otherwise, so that all clients of a closed
   * server would connect again at the same moment.
   */
  retryMessage(): string;
}

/** Milliseconds before a client connects again, at least. */
const MIN_RETRY = 1000;

const MULTIPART = { boundary: 'graphql', parameters: 'subscriptionSpec="1.0"', heartbeat: '{}' };
const RESULT_PART = multipartMixed({ ...MULTIPART, wrapper: ['{"payload":', '}'] });
const REFUSED_PART = multipartMixed({ ...MULTIPART, wrapper: ['{"payload":{"errors":', '}}'] });
const FAILED_PART = multipartMixed({ ...MULTIPART, wrapper: ['{"payload":null,"errors":', '}'] });

/** Returns one character per UTF-8 byte. */
const toLatin1 = (text: string): string => Buffer.from(text).toString('latin1');

const envelope = (before: string, after: string): Envelope => ({
  before: toLatin1(before),
  after: toLatin1(after),
});

const partEnvelope = ({ beforePayload, afterPayload }: Framing): Envelope =>
  envelope(beforePayload, afterPayload);

const ERROR_EVENT = envelope(`${EVENT_STREAM.beforePayload}{"errors":`, `}${EVENT_STREAM.afterPayload}`);

/** GraphQL over server-sent events, in distinct connections mode. */
export const SERVER_SENT_EVENTS: StreamFormat = {
  protocol: 'graphql-sse',
  framing: EVENT_STREAM,
  resultEnvelope: partEnvelope(EVENT_STREAM),
  errorEnvelope: () => ERROR_EVENT,
  cursorLine: (cursor) => `id: ${cursor}\n`,
  retryMessage: () => `retry: ${Math.round(MIN_RETRY * (1 + Math.random() * 3))}\n\n`,
};

const REFUSED_ENVELOPE = partEnvelope(REFUSED_PART);
const FAILED_ENVELOPE = partEnvelope(FAILED_PART);

/** Apollo's multipart subscription protocol. Errors next to `payload` are fatal errors of the subscription. */
export const MULTIPART_SUBSCRIPTION: StreamFormat = {
  protocol: 'multipart',
  framing: RESULT_PART,
  resultEnvelope: partEnvelope(RESULT_PART),
  errorEnvelope: (hasResults) => (hasResults ? FAILED_ENVELOPE : REFUSED_ENVELOPE),
  cursorLine: () => '',
  retryMessage: () => RESULT_PART.keepAlive ?? '',
};

/** A streaming media type of an `Accept` header, with the protocol that its parameters select. */
export interface StreamType {
  readonly format: 'event-stream' | 'json-lines' | 'multipart';
  /** The parameters in lower case, without quotes. */
  readonly parameters: ReadonlyMap<string, string>;
}

const FORMATS: Readonly<Record<string, StreamType['format']>> = {
  'text/event-stream': 'event-stream',
  'application/jsonl': 'json-lines',
  'multipart/mixed': 'multipart',
};

/** The maximum number of media ranges in an Accept header. A longer header counts as absent. */
const MAX_RANGES = 32;
/** A media range ends at a comma outside of quotes (RFC 9110 §5.6.1). */
const RANGE = /(?:"(?:[^"\\]|\\.)*"|[^,"])+/g;
const PARAMETER = /;\s*([^\s=;]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))/g;

/**
 * Returns the streaming media types that an `Accept` header names, by weight, then in the order of the
 * header. Wildcards select none of them: a client that does not name one cannot read it.
 */
export const streamTypesOf: (accept: string) => readonly StreamType[] = cacheByHeader((accept) => {
  const ranges = accept.match(RANGE) ?? [];
  if (ranges.length > MAX_RANGES) return [];
  return ranges
    .flatMap((range) => parseRange(range))
    .sort((a, b) => b.quality - a.quality)
    .map(({ format, parameters }) => ({ format, parameters }));
});

function parseRange(range: string): (StreamType & { readonly quality: number })[] {
  const [type = ''] = range.split(';', 1);
  const name = type.trim().toLowerCase();
  const format = Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined;
  if (format === undefined) return [];
  const parameters = new Map<string, string>();
  for (const [, parameter = '', quoted, token = ''] of range.matchAll(PARAMETER)) {
    parameters.set(parameter.toLowerCase(), (quoted ?? token).toLowerCase());
  }
  const quality = Number(parameters.get('q') ?? 1);
  return quality > 0 && quality <= 1 ? [{ format, parameters, quality }] : [];
}
