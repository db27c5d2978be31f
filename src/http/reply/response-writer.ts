import { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { destroyIncomplete, isAborted, isHttp2 } from './response-state.ts';

/**
 * Bytes of one body that an HTTP/2 response has in its buffers. All streams of a session share its memory
 * (`maxSessionMemory`, 10 MB in Node): a session with more of it in use refuses new requests.
 */
export const HTTP2_CHUNK: number = 64 * 1024;

/**
 * Whether middleware has replaced `write`. The HTTP/2 responses of createServer(express()) have Node's method as
 * their own.
 */
export function isWriteReplaced(res: ServerResponse): boolean {
  if (!Object.hasOwn(res, 'write')) return false;
  if (!isHttp2(res)) return true;
  // The module is loaded already.
  const { Http2ServerResponse } = process.getBuiltinModule('node:http2');
  return (res.write as unknown) !== Http2ServerResponse.prototype.write;
}

/** Ends a response with a body in memory. */
export function endWithBody(res: ServerResponse, body: Buffer): void {
  if (body.length <= HTTP2_CHUNK || !isHttp2(res)) {
    res.end(body);
    return;
  }
  let position = 0;
  const writeNext = (): void => {
    if (isAborted(res)) return;
    const chunk = body.subarray(position, position + HTTP2_CHUNK);
    position += chunk.length;
    if (position < body.length) writer.write(chunk);
    else res.end(chunk);
  };
  const writer = new ResponseWriter(res, () => {
    try {
      writeNext();
    } catch (error) {
      // Middleware that has replaced `write` or `end` has thrown, with no caller that could handle it.
      destroyIncomplete(res, error);
    }
  });
  writeNext();
}

/**
 * Whether the memory of written bytes may be reused later. Middleware that has replaced `write` or `end` (a body logger,
 * compression) may keep the bytes, and so may a connection that is not a socket of Node.
 */
export function mayReuseChunks(res: ServerResponse): boolean {
  const { write, end } = ServerResponse.prototype;
  return res.write === write && res.end === end && res.socket instanceof Socket;
}

/** Writes the chunks of a body, the next one when the response can take it. */
export class ResponseWriter {
  /** Whether the memory of a chunk may be reused as soon as the next one may be written. */
  readonly canReuseChunks: boolean;
  readonly #res: ServerResponse;
  readonly #onReady: (error?: Error | null) => void;
  readonly #hasOwnWrite: boolean;
  #waitsForDrain = false;
  #listensToDrain = false;

  /** @param onReady - called when the next chunk may be written, or with an error */
  constructor(res: ServerResponse, onReady: (error?: Error | null) => void) {
    this.#res = res;
    this.#onReady = onReady;
    this.#hasOwnWrite = res.write !== ServerResponse.prototype.write;
    this.canReuseChunks = mayReuseChunks(res);
  }

  write(chunk: Buffer): void {
    if (!this.#hasOwnWrite) this.#res.write(chunk, this.#onReady);
    else if (this.#isFull(this.#res.write(chunk))) this.#waitForDrain();
    else this.#onReady();
  }

  /**
   * Middleware that has replaced `write` may drop the callback, as compression does, and may return nothing.
   */
  #isFull(isWritten: boolean | undefined): boolean {
    return isWritten === false || (isWritten === undefined && this.#res.writableNeedDrain);
  }

  /**
   * Adds one listener for all waits: the package `compression` passes listeners of `drain` on to its compressor,
   * from which they are never removed.
   */
  #waitForDrain(): void {
    this.#waitsForDrain = true;
    if (this.#listensToDrain) return;
    this.#listensToDrain = true;
    this.#res.on('drain', () => {
      if (!this.#waitsForDrain) return;
      this.#waitsForDrain = false;
      this.#onReady();
    });
  }
}
