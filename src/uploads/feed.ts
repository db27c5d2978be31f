import type { IncomingMessage } from 'node:http';
import type { Writable } from 'node:stream';
import type { ConnectRequest } from '../../types/connect.ts';
import { HttpError } from '../http/reply/http-error.ts';

/** Writes a request's body to the parser until told to stop. */
export interface Feed {
  start(parser: Writable): void;
  stop(): void;
}

/** Feeds at most `maxBytes`; `failed` is told what is too large and when the client goes away. */
export function createFeed(req: IncomingMessage, maxBytes: number, failed: (error: HttpError) => void): Feed {
  let parser: Writable | undefined;
  let received = 0;
  let stopped = false;
  const onData = (chunk: Buffer): void => {
    received += chunk.length;
    if (received > maxBytes) failed(bodyTooLarge(maxBytes));
    // The write may have refused the form: what is being drained by now must not be paused again.
    else if (parser?.write(chunk) === false && !stopped) req.pause();
  };
  const onEnd = (): void => {
    stop();
    parser?.end();
  };
  const onGone = (): void => failed(clientGone());
  const onDrain = (): void => {
    req.resume();
  };
  const stop = (): void => {
    stopped = true;
    req.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
    parser?.off('drain', onDrain);
  };
  return {
    start(target) {
      parser = target;
      parser.on('drain', onDrain);
      req.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
      req.resume();
    },
    stop,
  };
}

/** The whole body, where something in front of us has read it and kept it (`rawBody` of cloud functions, `express.raw`). */
export function keptBody(req: IncomingMessage): Buffer | undefined {
  const { body, rawBody } = req as ConnectRequest & { rawBody?: unknown };
  return [rawBody, body].find((value) => Buffer.isBuffer(value));
}

/** The refusal of a body beyond the limit. */
export function bodyTooLarge(maxBytes: number): HttpError {
  return new HttpError(413, `The request body may have at most ${maxBytes} bytes`, {
    code: 'BODY_TOO_LARGE',
  });
}

/** The end of a request whose client hung up; nobody is there to read it. */
export function clientGone(): HttpError {
  return new HttpError(400, 'The client went away', { code: 'CLIENT_GONE' });
}
