import type { ServerResponse } from 'node:http';
import type { Http2Stream } from 'node:http2';
import { destroyIncomplete, isAborted } from '../reply/response-state.ts';
import { withVary } from '../reply/write-reply.ts';
import type { Framing } from './framing.ts';

/** Members that the package `compression` and HTTP/2 add to responses. */
interface Extensions {
  readonly flush?: () => void;
  readonly stream?: Pick<Http2Stream, 'session' | 'close'>;
}

/** Writes the payloads of one streaming response, each as soon as it is sent. */
export class StreamWriter {
  readonly #res: ServerResponse & Extensions;
  readonly #framing: Framing;
  #isSlow = false;
  #isClosed: boolean;
  #waiters: (() => void)[] = [];
  /** The number of times that a slow client has read all bytes sent to it. */
  drains = 0;

  constructor(res: ServerResponse, framing: Framing) {
    this.#res = res;
    this.#framing = framing;
    // A write to a lost connection emits an error. `close` already reports the lost connection.
    res.on('error', () => undefined);
    this.#isClosed = isAborted(res);
    res.once('close', () => this.#close());
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
    return this.#res.writableLength;
  }

  /**
   * Sends the head and the start of the body. Caches must not store the response, and proxies not transform
   * or delay it.
   */
  open(status: number, headers: Readonly<Record<string, string>> = {}): void {
    const res = this.#res;
    res.statusCode = status;
    res.setHeader('content-type', this.#framing.contentType);
    res.setHeader('cache-control', withNoTransform(res.getHeader('cache-control')));
    res.setHeader('vary', withVary(res.getHeader('vary'), 'Accept'));
    res.setHeader('x-content-type-options', 'nosniff');
    res.setHeader('x-accel-buffering', 'no');
    res.setHeader('incremental', '?1');
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
    if (this.#framing.opening === '') res.flushHeaders();
    else this.write(this.#framing.opening);
  }

  /** Sends one payload. */
  send(payload: string): void {
    this.write(this.#framing.beforePayload + payload + this.#framing.afterPayload);
  }

  /** Sends text or bytes that are framed already. */
  write(chunk: string | Buffer, encoding: 'utf8' | 'latin1' = 'utf8'): void {
    if (this.#isClosed) return;
    const res = this.#res;
    // Without a cork Node delays the bytes until this turn of the event loop ends.
    const socket = isHttp1(res) ? res.socket : null;
    socket?.cork();
    const isBuffered = typeof chunk === 'string' ? res.write(chunk, encoding) : res.write(chunk);
    socket?.uncork();
    res.flush?.();
    if (isBuffered || this.#isSlow) return;
    this.#isSlow = true;
    res.once('drain', () => {
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

  /** Ends the response. */
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
    this.#res.end();
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

/** Adds `no-transform` to the application's value (RFC 9111 §5.2.2.6): a compressor would delay messages. */
function withNoTransform(own: number | string | string[] | undefined): string {
  const value = String(own ?? 'no-store');
  return /\bno-transform\b/i.test(value) ? value : `${value}, no-transform`;
}
