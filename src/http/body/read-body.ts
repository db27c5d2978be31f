import type { IncomingMessage } from 'node:http';
import type { Readable, Transform } from 'node:stream';
import type { MaybePromise } from '../../../types/connect.ts';
import { HttpError } from '../reply/http-error.ts';
import { createDeadlines } from './deadlines.ts';
import { createInflater } from './inflate.ts';

/** How much of a body is taken, and how long it may take to come. */
export interface BodyLimits {
  /** Bytes, after decompression. */
  readonly bodyBytes: number;
  /** Milliseconds. */
  readonly bodyTimeout: number;
}

/** What a read rejects with when there is nobody left to answer. */
export const CLIENT_ABORTED: unique symbol = Symbol('client gone');

const EMPTY = Buffer.alloc(0);

/**
 * Reads request bodies, each once and within the limits. What is not there yet comes through a promise, which keeps the
 * caller's async context; the stream's own events have lost it.
 *
 * @throws HttpError 400, 408, 413, 415, or `GONE` when the client has left.
 */
export function createBodyReader(
  limits: BodyLimits,
  inflate: boolean,
): (req: IncomingMessage) => MaybePromise<Buffer> {
  const deadlines = createDeadlines(limits.bodyTimeout);

  function stream(req: IncomingMessage, inflater: Transform | undefined): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const source: Readable = inflater === undefined ? req : req.pipe(inflater);
      let chunks: Buffer[] | undefined;
      let only: Buffer | undefined;
      let size = 0;

      const settle = (error: unknown): void => {
        deadlines.clear(onSlow);
        source.off('data', onData).off('end', onEnd);
        req.off('error', onGone).off('close', onGone);
        if (inflater !== undefined) {
          req.unpipe(inflater);
          inflater.destroy();
        }
        if (error !== undefined) reject(error);
        else resolve(chunks === undefined ? (only ?? EMPTY) : Buffer.concat(chunks, size));
      };
      const onData = (given: Buffer | string): void => {
        // Text, where somebody has called `setEncoding` before.
        const chunk = typeof given === 'string' ? Buffer.from(given, req.readableEncoding ?? 'utf8') : given;
        size += chunk.length;
        if (size > limits.bodyBytes) settle(tooLarge(limits));
        else if (only === undefined) only = chunk;
        else if (chunks === undefined) chunks = [only, chunk];
        else chunks.push(chunk);
      };
      const onEnd = (): void => settle(undefined);
      const onGone = (): void => {
        // A request read to its end closes too, while its bytes are still being decompressed.
        if (!req.readableEnded) settle(CLIENT_ABORTED);
      };
      const onSlow = (): void => settle(tooSlow());

      deadlines.set(onSlow);
      source.on('data', onData).on('end', onEnd);
      req.on('error', onGone).on('close', onGone);
      inflater?.on('error', () => settle(broken()));
    });
  }

  return (req) => {
    const length = Number(req.headers['content-length'] ?? 0);
    if (length > limits.bodyBytes) throw tooLarge(limits);
    const encoding = req.headers['content-encoding'];
    const whole = encoding === undefined ? takeWhole(req, length) : undefined;
    if (whole !== undefined) return whole;
    if (req.readableEnded) throw alreadyRead();
    if (req.destroyed) throw CLIENT_ABORTED;
    return stream(req, createInflater(encoding, inflate));
  };
}

/**
 * Whether a tick may bring the whole body, as it does where a small one shares a packet with its head: Node calls us
 * between the two.
 */
export function isComing(req: IncomingMessage): boolean {
  return req.readableFlowing === null && !req.complete;
}

/**
 * A body that is there to its end, and that nobody else has begun to read: it needs neither listeners nor a promise.
 * Where `req.complete` is still false, `readEnd` has to follow.
 */
function takeWhole(req: IncomingMessage, length: number): Buffer | undefined {
  if (length === 0 || req.readableLength !== length || req.destroyed) return undefined;
  return req.readableFlowing === null && req.readableEncoding === null ? req.read() : undefined;
}

/** Reads the end behind a body that was taken whole: others may wait for it. */
export function readEnd(req: IncomingMessage): void {
  if (req.complete) req.read();
  else req.resume();
}

/** The refusal of a body over its limit. */
export const tooLarge = ({ bodyBytes }: BodyLimits): HttpError =>
  new HttpError(413, `The request body is larger than ${bodyBytes} bytes`, { code: 'BODY_TOO_LARGE' });
const tooSlow = (): HttpError =>
  new HttpError(408, 'The request body took too long to arrive', { code: 'BODY_TIMEOUT' });
const broken = (): HttpError =>
  new HttpError(400, 'The request body cannot be decompressed', { code: 'BAD_ENCODING' });
const alreadyRead = (): HttpError =>
  new HttpError(400, 'The request body was read before, and nothing was kept of it', {
    code: 'BODY_CONSUMED',
  });
