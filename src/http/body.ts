import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { HttpError } from './error.ts';
import { createInflater } from './inflate.ts';

/** How much of a body is taken, and how long it may take to come. */
export interface BodyLimits {
  /** Bytes, after decompression. */
  readonly bodyBytes: number;
  /** Milliseconds. */
  readonly bodyTimeout: number;
}

/** What a read rejects with when there is nobody left to answer. */
export const GONE: unique symbol = Symbol('client gone');

const EMPTY = Buffer.alloc(0);

/**
 * Reads a request body once, within its limits.
 *
 * @throws HttpError 400, 408, 413, 415, or `GONE` when the client has left.
 */
export function readBody(req: IncomingMessage, limits: BodyLimits, inflate: boolean): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(req.headers['content-length'] ?? 0) > limits.bodyBytes) throw tooLarge(limits);
    if (req.readableEnded) throw alreadyRead();
    const inflater = createInflater(req.headers['content-encoding'], inflate);
    const source: Readable = inflater === undefined ? req : req.pipe(inflater);
    const chunks: Buffer[] = [];
    let size = 0;
    const timer = setTimeout(() => settle(tooSlow()), limits.bodyTimeout);
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > limits.bodyBytes) settle(tooLarge(limits));
      else chunks.push(chunk);
    };
    const onEnd = (): void => settle(undefined);
    const onGone = (): void => settle(GONE);
    const onBroken = (): void => settle(broken());
    function settle(error: unknown): void {
      clearTimeout(timer);
      source.off('data', onData).off('end', onEnd);
      req.off('error', onGone).off('close', onGone);
      if (inflater !== undefined) {
        req.unpipe(inflater);
        inflater.destroy();
      }
      if (error === undefined)
        resolve(chunks.length === 1 ? (chunks[0] ?? EMPTY) : Buffer.concat(chunks, size));
      else reject(error);
    }
    source.on('data', onData).on('end', onEnd);
    inflater?.on('error', onBroken);
    req.on('error', onGone).on('close', onGone);
  });
}

const tooLarge = ({ bodyBytes }: BodyLimits): HttpError =>
  new HttpError(413, `The request body is larger than ${bodyBytes} bytes`, { code: 'BODY_TOO_LARGE' });
const tooSlow = (): HttpError =>
  new HttpError(408, 'The request body took too long to arrive', { code: 'BODY_TIMEOUT' });
const broken = (): HttpError =>
  new HttpError(400, 'The request body cannot be decompressed', { code: 'BAD_ENCODING' });
const alreadyRead = (): HttpError =>
  new HttpError(400, 'The request body was read before, and nothing was kept of it', {
    code: 'BODY_CONSUMED',
  });
