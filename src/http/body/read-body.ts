import type { IncomingMessage } from 'node:http';
import type { Readable, Transform } from 'node:stream';
import { setImmediate } from 'node:timers';
import { HttpError } from '../reply/http-error.ts';
import { createDeadlines, type Deadlines } from './deadlines.ts';
import { createInflater } from './inflate.ts';

// Taken when the module is loaded: fake timers of a test must not delay requests.
const { nextTick } = process;

/** The limits of a request body: its size, the time to receive it, and whether it may be compressed. */
interface BodyOptions {
  /** Bytes, after decompression. */
  readonly bodyBytes: number;
  /** Milliseconds. */
  readonly bodyTimeout: number;
  readonly inflate: boolean;
}

/** The rejection value of a read whose client disconnected: no response can be sent. */
export const CLIENT_ABORTED: unique symbol = Symbol('client aborted');

type Reject = (error: unknown) => void;

/**
 * Creates a function that reads a request body to its end and parses it. It keeps the caller's asynchronous
 * context, which the events of the stream lack. The promise rejects with an HttpError (400, 408, 413, 415),
 * with `CLIENT_ABORTED`, or with an error of `parse`.
 */
export function createBodyReader<T>(
  options: BodyOptions,
  parse: (body: Buffer) => T,
): (req: IncomingMessage) => Promise<T> {
  const deadlines = createDeadlines(options.bodyTimeout);

  function read(req: IncomingMessage, resolve: (value: T) => void, reject: Reject): void {
    const length = Number(req.headers['content-length'] ?? 0);
    const encoding = req.headers['content-encoding'];
    try {
      if (length > options.bodyBytes) reject(bodyTooLarge(options.bodyBytes));
      else if (encoding === undefined && isBuffered(req, length)) {
        const value = parse(readBuffered(req, length));
        // If Node has not processed the end of the message yet, an immediate response would cost much more.
        if (req.complete) resolve(value);
        else setImmediate(consumeEnd, req, resolve, value);
      } else if (req.readableEnded) reject(consumed());
      else if (req.destroyed) reject(CLIENT_ABORTED);
      else {
        const inflater = createInflater(encoding, options);
        collect(req, inflater, options.bodyBytes, deadlines).then(parse).then(resolve, reject);
      }
    } catch (error) {
      reject(error);
    }
  }

  return (req) =>
    new Promise((resolve, reject) => {
      // Node parses a small body that shares a packet with the head right after the handler returns: one tick
      // later it is buffered, and needs no listeners.
      if (req.readableFlowing === null && !req.complete) nextTick(read, req, resolve, reject);
      else read(req, resolve, reject);
    });
}

/** Collects the chunks of a body, through `inflater` if it is compressed. */
function collect(
  req: IncomingMessage,
  inflater: Transform | undefined,
  maxBytes: number,
  deadlines: Deadlines,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const source: Readable = inflater === undefined ? req : req.pipe(inflater);
    const chunks: Buffer[] = [];
    let size = 0;

    const stop = (): void => {
      deadlines.clear(onTimeout);
      source.off('data', onData).off('end', onEnd);
      req.off('error', onClose).off('close', onClose);
      if (inflater !== undefined) {
        req.unpipe(inflater);
        inflater.destroy();
      }
    };
    const fail = (error: unknown): void => {
      stop();
      reject(error);
    };
    const onData = (given: Buffer | string): void => {
      // Chunks are strings if earlier middleware called `setEncoding`.
      const chunk = typeof given === 'string' ? Buffer.from(given, req.readableEncoding ?? 'utf8') : given;
      size += chunk.length;
      if (size > maxBytes) fail(bodyTooLarge(maxBytes));
      else chunks.push(chunk);
    };
    const onEnd = (): void => {
      stop();
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size));
    };
    const onClose = (): void => {
      // A request that was read to its end closes while its bytes are still being decompressed.
      if (!req.readableEnded) fail(CLIENT_ABORTED);
    };
    const onTimeout = (): void => fail(timedOut());

    deadlines.set(onTimeout);
    // Earlier middleware may have paused the request; a listener alone does not resume it.
    source.on('data', onData).on('end', onEnd).resume();
    req.on('error', onClose).on('close', onClose);
    inflater?.on('error', () => fail(malformed()));
  });
}

/** Whether the buffer of the stream contains the whole body, and no other code has begun to read it. */
function isBuffered(req: IncomingMessage, length: number): boolean {
  return (
    length > 0 &&
    req.readableLength === length &&
    req.readableFlowing === null &&
    req.readableEncoding === null &&
    !req.destroyed
  );
}

/** Reads the whole buffer of the stream. `read` returns only the bytes of one packet on Node 26. */
function readBuffered(req: IncomingMessage, length: number): Buffer {
  const first: Buffer = req.read();
  if (first.length === length) return first;
  const chunks = [first];
  for (let chunk = req.read(); chunk !== null; chunk = req.read()) chunks.push(chunk);
  return Buffer.concat(chunks, length);
}

/** Makes the stream emit `end` for other listeners. */
function consumeEnd<T>(req: IncomingMessage, resolve: (value: T) => void, value: T): void {
  if (req.complete) req.read();
  else req.resume();
  resolve(value);
}

/** Creates the error of a body above its limit. */
export const bodyTooLarge = (maxBytes: number): HttpError =>
  new HttpError(413, `The request body is larger than ${maxBytes} bytes`, { code: 'BODY_TOO_LARGE' });
/** Creates the error of a body above its deadline. */
export const timedOut = (): HttpError =>
  new HttpError(408, 'The request body did not arrive in time', { code: 'BODY_TIMEOUT' });
const malformed = (): HttpError =>
  new HttpError(400, 'The request body cannot be decompressed', { code: 'BAD_ENCODING' });
const consumed = (): HttpError =>
  new HttpError(
    400,
    'Earlier middleware has consumed the request body and left no req.body; mount graphqlHTTP before that middleware',
    { code: 'BODY_CONSUMED' },
  );
