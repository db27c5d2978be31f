/**
 * The format of a streaming response. A payload is JSON text without line breaks; the text around it delimits
 * it, so that the client can process it immediately.
 */
export interface Framing {
  readonly contentType: string;
  /** The start of the body. */
  readonly opening: string;
  readonly beforePayload: string;
  readonly afterPayload: string;
  /** A message without a payload; undefined if the format has none. */
  readonly keepAlive: string | undefined;
  /** The end of the body, from which the client knows that it is complete. */
  readonly ending: string;
}

/**
 * Server-sent events (HTML, "Server-sent events") with the event names of GraphQL over SSE. The comment at
 * the start makes proxies forward the response. EventSource ignores an event without a `data` line, so
 * `complete` has an empty one.
 */
export const EVENT_STREAM: Framing = {
  contentType: 'text/event-stream; charset=utf-8',
  opening: ':\n\n',
  beforePayload: 'event: next\ndata: ',
  afterPayload: '\n\n',
  keepAlive: ':\n\n',
  ending: 'event: complete\ndata:\n\n',
};

/** JSON lines: one payload per line. */
export const JSON_LINES: Framing = {
  contentType: 'application/jsonl; charset=utf-8',
  opening: '',
  beforePayload: '',
  afterPayload: '\n',
  keepAlive: undefined,
  ending: '',
};

/** The members of a multipart body that differ between the protocols that use it. */
interface MultipartOptions {
  readonly boundary: string;
  /** The parameters of the media type in addition to the boundary, such as `incrementalSpec=v0.2`. */
  readonly parameters: string;
  /** The text around the payload of each part. */
  readonly wrapper?: readonly [before: string, after: string];
  /** The body of parts without a payload. */
  readonly heartbeat?: string;
}

const PART_HEAD = '\r\nContent-Type: application/json; charset=utf-8\r\n\r\n';

/**
 * `multipart/mixed` (RFC 2046 §5.1.3). The delimiter that ends a part is sent together with the part: clients
 * wait for it.
 */
export function multipartMixed(options: MultipartOptions): Framing {
  const { boundary, parameters, wrapper: [before, after] = ['', ''], heartbeat } = options;
  const delimiter = `\r\n--${boundary}`;
  return {
    contentType: `multipart/mixed; boundary="${boundary}"${parameters === '' ? '' : `; ${parameters}`}`,
    opening: `--${boundary}`,
    beforePayload: PART_HEAD + before,
    afterPayload: after + delimiter,
    keepAlive: heartbeat === undefined ? undefined : PART_HEAD + heartbeat + delimiter,
    ending: '--\r\n',
  };
}
