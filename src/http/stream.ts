import type { ServerResponse } from 'node:http';
import type { Http2Stream } from 'node:http2';
import type { Transform, Writable } from 'node:stream';
import { destroyIncomplete, isAborted, removeLifetime, withVary } from './reply.ts';

/** Members that the package `compression` and HTTP/2 add to responses. */
interface Extensions {
  readonly flush?: () => void;
  readonly stream?: Pick<Http2Stream, 'session' | 'close'>;
}

/** The content coding of one streaming response. */
export interface StreamEncoding {
  readonly coding: string;
  readonly compressor: Transform;
  /** Lets the compressor write what it has got. */
  flush(): void;
  /** Frees the compressor. */
  release(): void;
}

/** Writes the payloads of one streaming response, each as soon as it is sent. */
export class StreamWriter {
  readonly #res: ServerResponse & Extensions;
  readonly #framing: Framing;
  /** Undefined if the response has no content coding. */
  readonly #encoding: StreamEncoding | undefined;
  #isSlow = false;
  #isClosed: boolean;
  #waiters: (() => void)[] = [];
  /** The number of times that a slow client has read all bytes sent to it. */
  drains = 0;

  constructor(res: ServerResponse, framing: Framing, encoding?: StreamEncoding) {
    this.#res = res;
    this.#framing = framing;
    this.#encoding = encoding;
    encoding?.compressor.on('error', () => undefined).pipe(res);
    // A write to a lost connection emits an error. `close` already reports the lost connection.
    res.on('error', () => undefined);
    this.#isClosed = isAborted(res);
    res.once('close', () => {
      encoding?.release();
      this.#close();
    });
  }

  /** True when the response has ended or the client has disconnected. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** True from a write that exceeded the buffers until they are empty. */
  get isSlow(): boolean {
    return this.#isSlow && !this.#isClosed;
  }

  /** The number of bytes that the client has not received. */
  get pendingBytes(): number {
    const { compressor } = this.#encoding ?? {};
    const compressing = compressor === undefined ? 0 : compressor.writableLength + compressor.readableLength;
    return this.#res.writableLength + compressing;
  }

  /**
   * Sends the head and the start of the body. Caches must not store the response, and proxies not transform
   * or delay it.
   */
  open(status: number, headers: Readonly<Record<string, string>> = {}): void {
    const res = this.#res;
    res.statusCode = status;
    res.setHeader('content-type', this.#framing.contentType);
    // What other code has set for results is not for events, and an error may still follow.
    removeLifetime(res);
    // A compressor would delay messages (RFC 9111 §5.2.2.6).
    res.setHeader('cache-control', 'no-store, no-transform');
    res.setHeader('vary', withVary(res.getHeader('vary'), 'Accept'));
    res.setHeader('x-content-type-options', 'nosniff');
    res.setHeader('x-accel-buffering', 'no');
    res.setHeader('incremental', '?1');
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
    if (this.#encoding !== undefined) {
      res.setHeader('content-encoding', this.#encoding.coding);
      res.setHeader('vary', withVary(res.getHeader('vary'), 'Accept-Encoding'));
    }
    if (this.#framing.opening === '') res.flushHeaders();
    else this.write(this.#framing.opening);
  }

  send(payload: string): void {
    this.write(this.#framing.beforePayload + payload + this.#framing.afterPayload);
  }

  /** Sends text or bytes that are framed already. */
  write(chunk: string | Buffer, encoding: 'utf8' | 'latin1' = 'utf8'): void {
    if (this.#isClosed) return;
    if (this.#encoding !== undefined) {
      const { compressor } = this.#encoding;
      const isBuffered =
        typeof chunk === 'string' ? compressor.write(chunk, encoding) : compressor.write(chunk);
      this.#encoding.flush();
      this.#waitUnless(isBuffered, compressor);
      return;
    }
    const res = this.#res;
    // Without a cork Node delays the bytes until this turn of the event loop ends.
    const socket = isHttp1(res) ? res.socket : null;
    socket?.cork();
    const isBuffered = typeof chunk === 'string' ? res.write(chunk, encoding) : res.write(chunk);
    socket?.uncork();
    res.flush?.();
    this.#waitUnless(isBuffered, res);
  }

  #waitUnless(isBuffered: boolean, output: Writable): void {
    if (isBuffered || this.#isSlow) return;
    this.#isSlow = true;
    output.once('drain', () => {
      this.#isSlow = false;
      this.drains++;
      this.#resume();
    });
  }

  /** Sends a message without a payload, unless the client still has to read others. */
  keepAlive(): void {
    const { keepAlive } = this.#framing;
    if (keepAlive !== undefined && !this.#isSlow) this.write(keepAlive);
  }

  /** Resolves when the client has read its messages or has disconnected; undefined if it is not slow. */
  waitForDrain(): Promise<void> | undefined {
    if (!this.isSlow) return undefined;
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  end(): void {
    this.write(this.#framing.ending);
    this.#end();
  }

  /**
   * Ends the response without its ending, and then its connection: the client detects that messages are missing
   * and connects again, perhaps to another process. On the same connection it would reach this one.
   */
  endConnection(): void {
    const { socket, stream } = this.#res;
    this.#res.once('finish', () => (stream === undefined ? socket?.end() : stream.session?.close()));
    this.#end();
  }

  /** Closes the connection of a client that does not read. */
  destroy(): void {
    destroyIncomplete(this.#res);
  }

  /**
   * Calls `closed` once when the response has ended or the client has disconnected. Returns a function that
   * cancels this.
   */
  onClosed(closed: () => void): () => void {
    const res = this.#res;
    res.once('close', closed);
    return () => void res.off('close', closed);
  }

  #end(): void {
    if (this.#isClosed) return;
    if (this.#encoding === undefined) this.#res.end();
    // Its last bytes end the response.
    else this.#encoding.compressor.end();
    this.#close();
  }

  #close(): void {
    this.#isClosed = true;
    this.#resume();
  }

  #resume(): void {
    for (const resume of this.#waiters.splice(0)) resume();
  }
}

/** Whether the response writes to a socket. The socket of an HTTP/2 response belongs to all its streams. */
const isHttp1 = ({ req }: ServerResponse): boolean => req === undefined || req.httpVersionMajor < 2;

/** A streaming response whose payloads come from an async iterable. */
interface PayloadStream {
  readonly framing: Framing;
  readonly encoding?: StreamEncoding | undefined;
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The payloads, as JSON text without line breaks. */
  readonly payloads: AsyncIterable<string>;
  /** Milliseconds between messages that keep the connection open, if the format has them. 0: none. */
  readonly keepAlive: number;
  /** Called when the source fails. Returns the last payload, if there is one. */
  onError(error: unknown): string | undefined;
}

/** Milliseconds after which a client that reads nothing is disconnected. */
const STALL_TIMEOUT = 30_000;

/**
 * Sends the payloads of an async iterable, each as soon as it is available. Reads the next payload only when
 * the client has received the previous ones, and calls `return` of the iterator when the client disconnects.
 * Never rejects.
 */
export async function streamPayloads(res: ServerResponse, stream: PayloadStream): Promise<void> {
  const { framing, status, headers, payloads, keepAlive, encoding } = stream;
  const writer = new StreamWriter(res, framing, encoding);
  const iterator = payloads[Symbol.asyncIterator]();
  const cancel = writer.onClosed(() => returnIterator(iterator));
  const timer = keepAlive > 0 ? setInterval(() => writer.keepAlive(), keepAlive).unref() : undefined;
  try {
    writer.open(status, headers);
    for (;;) {
      const { done, value } = await iterator.next();
      if (done === true) break;
      if (writer.isClosed) {
        returnIterator(iterator);
        break;
      }
      writer.send(value);
      await drained(writer);
    }
  } catch (error) {
    const last = writer.isClosed ? undefined : stream.onError(error);
    if (last !== undefined) writer.send(last);
  }
  clearInterval(timer);
  cancel();
  writer.end();
}

/** Waits until the client has received all payloads, or disconnects it. */
async function drained(writer: StreamWriter): Promise<void> {
  const waiting = writer.waitForDrain();
  if (waiting === undefined) return;
  const timer = setTimeout(() => writer.destroy(), STALL_TIMEOUT).unref();
  await waiting;
  clearTimeout(timer);
}

function returnIterator(iterator: AsyncIterator<string>): void {
  // A rejection of `return` concerns no client. A source that throws synchronously has stopped too.
  new Promise((resolve) => resolve(iterator.return?.())).catch(() => undefined);
}

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
