import type { IncomingMessage } from 'node:http';
import { HttpError } from './error.ts';

/** How much of a body is taken, and how long it may take to come. */
export interface BodyLimits {
  /** Bytes. */
  readonly bodyBytes: number;
  /** Milliseconds. */
  readonly bodyTimeout: number;
}

/** Reads a request body once, within its limits. Rejects with an `HttpError`, or `undefined` when the client has gone. */
export function readBody(req: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const declared = Number(req.headers['content-length'] ?? 0);
    if (declared > limits.bodyBytes) throw tooLarge(limits);
    if (req.readableEnded) throw alreadyRead();
    let first: Buffer | undefined;
    let rest: Buffer[] | undefined;
    let size = 0;
    const timer = setTimeout(() => settle(tooSlow()), limits.bodyTimeout);
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > limits.bodyBytes) settle(tooLarge(limits));
      else if (first === undefined) first = chunk;
      else {
        rest ??= [first];
        rest.push(chunk);
      }
    };
    const onEnd = (): void => settle(undefined);
    const onGone = (): void => settle(GONE);
    function settle(error: unknown): void {
      clearTimeout(timer);
      req.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      if (error === undefined) resolve(rest === undefined ? (first ?? EMPTY) : Buffer.concat(rest, size));
      else reject(error);
    }
    req.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}

/** What a read rejects with when there is nobody left to answer. */
export const GONE: unique symbol = Symbol('client gone');
const EMPTY = Buffer.alloc(0);

const tooLarge = ({ bodyBytes }: BodyLimits): HttpError =>
  new HttpError(413, `The request body is larger than ${bodyBytes} bytes`, { code: 'BODY_TOO_LARGE' });
const tooSlow = (): HttpError =>
  new HttpError(408, 'The request body took too long to arrive', { code: 'BODY_TIMEOUT' });
const alreadyRead = (): HttpError =>
  new HttpError(400, 'The request body was already read by something in front that kept nothing of it', {
    code: 'BODY_CONSUMED',
  });

/** Text of a body: fatal for broken UTF-8, a byte order mark dropped. */
export function decodeText(decoder: TextDecoder, bytes: Buffer): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new HttpError(400, 'The request body is not valid UTF-8', { code: 'BAD_ENCODING' });
  }
}
