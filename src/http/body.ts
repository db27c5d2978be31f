import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable, Transform } from 'node:stream';
import { setImmediate } from 'node:timers';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { ConnectRequest } from '../../types/connect.ts';
import { byOption, formatValue } from '../options/rules.ts';
import { HttpError } from './reply.ts';
import { createDeadlines, type Deadlines } from './timers.ts';

// Taken when the module is loaded: fake timers of a test must not delay requests.
const { nextTick } = process;

/**
 * Marks the files of requests. JSON has no symbols, so no client can forge the mark. It is a registered
 * symbol, so that files of the CommonJS build are recognised by the ES build.
 */
export const UPLOADED: unique symbol = Symbol.for('espalier.uploaded');

/** The limits of a request body: its size, and the time to receive it. */
interface BodyOptions {
  /** Bytes, after decompression. */
  readonly bodyBytes: number;
  /** Milliseconds. */
  readonly bodyTimeout: number;
  /** Whether these are options of the application, which messages name. */
  readonly areOptions?: boolean;
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
      if (length > options.bodyBytes) reject(tooLarge(options));
      else if (encoding === undefined && isBuffered(req, length)) {
        const value = parse(readBuffered(req, length));
        // If Node has not processed the end of the message yet, an immediate response would cost much more.
        if (req.complete) resolve(value);
        else setImmediate(consumeEnd, req, resolve, value);
      } else if (req.readableEnded) reject(consumed());
      else if (req.destroyed) reject(CLIENT_ABORTED);
      else {
        const inflater = createInflater(encoding);
        collect(req, inflater, options, deadlines).then(parse).then(resolve, reject);
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
  options: BodyOptions,
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
      if (size > options.bodyBytes) fail(tooLarge(options));
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

/**
 * Whether an earlier body parser has set `req.body`. Some parsers set an empty object for types that they do
 * not read; the stream is then untouched.
 */
export function isParsed(req: ConnectRequest): boolean {
  const { body } = req;
  if (body === undefined || body === null) return false;
  if (typeof body !== 'object' || req.readableDidRead || req.readableEnded) return true;
  return Buffer.isBuffer(body) || Array.isArray(body) || Object.keys(body).length > 0;
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

/** Creates the error of a body above its limit, which an option may set: the client sees it, or only the log. */
export const bodyTooLarge = (maxBytes: number, shown = '', option = ''): HttpError =>
  new HttpError(413, `The request body is larger than ${maxBytes} bytes; send less${shown}`, {
    code: 'BODY_TOO_LARGE',
    option,
  });
const tooLarge = ({ bodyBytes, areOptions }: BodyOptions): HttpError =>
  bodyTooLarge(bodyBytes, areOptions ? byOption('limits.bodyBytes') : '');
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

const INFLATERS: Record<string, () => Transform> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/**
 * Creates the stream that decodes a Content-Encoding; undefined for the identity coding.
 *
 * @throws HttpError 415 that lists the accepted codings (RFC 9110 §15.5.16).
 */
function createInflater(encoding: string | undefined): Transform | undefined {
  if (encoding === undefined) return undefined;
  const name = encoding.trim().toLowerCase();
  if (name === 'identity' || name === '') return undefined;
  if (Object.hasOwn(INFLATERS, name)) return INFLATERS[name]?.();
  const accepted = 'gzip, deflate, br, identity';
  const message = `The Content-Encoding ${formatValue(name)} is not supported; accepted: ${accepted}`;
  throw new HttpError(415, message, {
    headers: { 'accept-encoding': accepted },
    code: 'UNSUPPORTED_ENCODING',
  });
}

/** A JSON text up to this size is always parsed quickly. */
const SMALL_BYTES = 16 * 1024;
const MAX_LEVELS = 220;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const SPACE = 0x20;
const OPENING = 0x7b;
const CLOSING = 0x7d;

/**
 * Refuses JSON with too many or too deep values, which would block the event loop. Counting is ten times as
 * fast as parsing and allocates no values.
 *
 * @throws HttpError 400.
 */
export function assertJsonWithinLimits(bytes: Buffer, maxValues: number): void {
  if (bytes.length <= SMALL_BYTES) return;
  let values = 0;
  let level = 0;
  let opened = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte <= SPACE) continue;
    // "[" and "{" differ in one bit, and so do "]" and "}".
    const bracket = byte | 0x20;
    if (bracket === CLOSING) {
      level -= 1;
      opened = false;
      continue;
    }
    if (opened || byte === COMMA) values += 1;
    opened = bracket === OPENING;
    if (opened) level += 1;
    else if (byte === QUOTE) at = endOfString(bytes, at);
    if (level > MAX_LEVELS) throw limitExceeded(`is nested deeper than ${MAX_LEVELS} levels`);
    if (values > maxValues) throw limitExceeded(`contains more than ${maxValues} values`);
  }
}

/** Like `assertJsonWithinLimits`, for a string. */
export function assertJsonTextWithinLimits(text: string, maxValues: number): void {
  if (text.length > SMALL_BYTES / 4) assertJsonWithinLimits(Buffer.from(text), maxValues);
}

const limitExceeded = (message: string): HttpError =>
  new HttpError(400, `The JSON of the request ${message}`, { code: 'LIMIT_JSON' });

/**
 * Returns the position of the closing quote of the string that begins at `start`; the text's length if there
 * is none.
 */
function endOfString(bytes: Buffer, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end !== -1; end = bytes.indexOf(QUOTE, end + 1)) {
    let first = end;
    while (bytes[first - 1] === BACKSLASH) first -= 1;
    // The quote is escaped only after an odd number of backslashes.
    if ((end - first) % 2 === 0) return end;
  }
  return bytes.length;
}

/** Requests with `Expect: 100-continue` for which no 100 was sent yet, because no code has read the body. */
const awaitingContinue = new WeakSet<IncomingMessage>();

/**
 * Handles a server's `checkContinue` event: defers the `100 Continue` until the body is read (by any body
 * parser, `pipe` or `for await`), so that after an early response (413, 415, 403, 401) the client does not
 * send the body at all (RFC 9110 §10.1.1). Such a response closes the connection, since the client may send
 * the body nevertheless. By default Node sends the 100 before any middleware runs.
 */
export function deferContinue(req: IncomingMessage, res: ServerResponse): void {
  const { shouldKeepAlive } = res;
  res.shouldKeepAlive = false;
  awaitingContinue.add(req);
  req._read = function sendContinue(size: number): void {
    Reflect.deleteProperty(req, '_read');
    awaitingContinue.delete(req);
    if (!res.headersSent) {
      res.shouldKeepAlive = shouldKeepAlive;
      res.writeContinue();
    }
    req._read(size);
  };
}

const MAX_BYTES = 16 * 1024 * 1024;
const MAX_MILLISECONDS = 3000;
/** Milliseconds before a reset, because an immediate reset could discard the response. */
const DESTROY_DELAY = 1000;

/** Requests that are already being drained. */
const draining = new WeakSet<IncomingMessage>();

/**
 * Call this whenever a response is sent before the request's body was read to its end (413, 415, 405, 403, a
 * field limit), just before or after the response is written, after removing your own `data` listeners. Has
 * no effect on any other request.
 *
 * The response is sent immediately and keep-alive stays on; the rest of the body is read and discarded. The
 * connection remains usable if the body ends within 16 MB and 3 s; otherwise it is destroyed one second
 * later. Closing it immediately would reset the connection of a client that is still sending, and the client
 * would never receive the response.
 *
 * Over HTTP/2 the limits are the same, and only the stream is reset. An earlier reset is valid (RFC 9113 §8.1), but
 * Node's client never releases the memory of the bytes it could not send, until it refuses every stream of the
 * session, and requests of HAProxy on the same connection stall.
 */
export function drainRequest(req: IncomingMessage, res: ServerResponse): void {
  if (draining.has(req) || req.destroyed || awaitingContinue.has(req)) return;
  draining.add(req);
  if (!req.complete) limitDrain(req, res);
  req.resume();
}

function limitDrain(req: IncomingMessage, res: ServerResponse): void {
  let left = MAX_BYTES;
  const onData = (chunk: Buffer): void => {
    left -= chunk.length;
    if (left < 0) giveUp();
  };
  const stop = (): void => {
    clearTimeout(timer);
    req.off('data', onData).off('end', stop).off('close', stop);
  };
  const giveUp = (): void => {
    stop();
    req.pause();
    if (req.httpVersionMajor >= 2) resetAfterResponse(req, res);
    else if (res.writableFinished || res.destroyed) destroyLater(req);
    else res.once('finish', () => destroyLater(req));
  };
  const timer = setTimeout(giveUp, MAX_MILLISECONDS).unref();
  req.on('data', onData).once('end', stop).once('close', stop);
}

function destroyLater(req: IncomingMessage): void {
  const timer = setTimeout(() => req.destroy(), DESTROY_DELAY).unref();
  req.once('close', () => clearTimeout(timer));
}

/** The members of an HTTP/2 stream that are used here. */
interface ResettableStream {
  readonly writableFinished: boolean;
  once(event: 'finish', listener: () => void): unknown;
  close(code: number): void;
}

/**
 * RST_STREAM with NO_ERROR follows the response, so the connection is kept (RFC 9113 §8.1). The response
 * object of the compatibility API emits `finish` only when the whole stream is closed, so this function
 * listens to the stream.
 */
function resetAfterResponse(req: IncomingMessage, res: ServerResponse): void {
  const { stream } = res as ServerResponse & { stream?: ResettableStream };
  if (stream === undefined) return;
  const reset = (): void => {
    if (req.complete) return;
    // In Node 20, a paused stream with unread bytes never closes, and neither does its session.
    req.resume();
    stream.close(0);
  };
  // Waits two turns of the event loop: Node's client never closes a stream that receives the end and the
  // reset together.
  const resetLater = (): void => void setImmediate(setImmediate, reset);
  if (stream.writableFinished) resetLater();
  else stream.once('finish', resetLater);
}
