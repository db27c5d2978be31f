import type { IncomingMessage, ServerResponse } from 'node:http';
import { awaitsContinue } from './expect-continue.ts';

const MAX_BYTES = 16 * 1024 * 1024;
const MAX_MILLISECONDS = 3000;
/** A reset would overtake an answer that the client has yet to read: it may be busy writing. */
const LINGER_MILLISECONDS = 1000;

/** Requests that are being drained already. */
const draining = new WeakSet<IncomingMessage>();

/**
 * Call this whenever a request is answered before its body was read to the end (413, 415, 405, 403, a field limit),
 * just before or after writing the answer, with your own `data` listeners removed. Harmless for any other request.
 *
 * The answer goes out at once and keep-alive stays on; what the client still sends is read and thrown away. A body that
 * ends within 16 MB and 3 s leaves the connection usable; beyond that no more is read, and the connection is destroyed a second
 * later. Closing at once instead resets the connection under a client that is still sending, and it never sees the answer.
 */
export function drainRequest(req: IncomingMessage, res: ServerResponse): void {
  if (draining.has(req) || req.destroyed || awaitsContinue(req)) return;
  draining.add(req);
  if (req.httpVersionMajor >= 2) resetAfterAnswer(req, res);
  else if (!req.complete) capDrain(req, res);
  req.resume();
}

function capDrain(req: IncomingMessage, res: ServerResponse): void {
  let left = MAX_BYTES;
  const count = (chunk: Buffer): void => {
    left -= chunk.length;
    if (left < 0) cut();
  };
  const stop = (): void => {
    clearTimeout(timer);
    req.off('data', count).off('end', stop).off('close', stop);
  };
  const cut = (): void => {
    stop();
    req.pause();
    if (res.writableFinished || res.destroyed) linger(req);
    else res.once('finish', () => linger(req));
  };
  const timer = setTimeout(cut, MAX_MILLISECONDS).unref();
  req.on('data', count).once('end', stop).once('close', stop);
}

function linger(req: IncomingMessage): void {
  const timer = setTimeout(() => req.destroy(), LINGER_MILLISECONDS).unref();
  req.once('close', () => clearTimeout(timer));
}

/** The part of an HTTP/2 stream that is needed here. */
interface ResettableStream {
  readonly writableFinished: boolean;
  once(event: 'finish', listener: () => void): unknown;
  close(code: number): void;
}

/**
 * HTTP/2 has no connection to save: RST_STREAM with NO_ERROR behind the answer (RFC 9113 §8.1). The response object of the
 * compatibility API tells `finish` only when the whole stream is closed, hence the stream itself.
 */
function resetAfterAnswer(req: IncomingMessage, res: ServerResponse): void {
  const { stream } = res as ServerResponse & { stream?: ResettableStream };
  if (stream === undefined) return;
  const reset = (): void => {
    if (!req.complete) stream.close(0);
  };
  // Two turns later, when the end of the answer has left: Node's client never closes a stream that gets both at once.
  const later = (): void => void setImmediate(setImmediate, reset);
  if (stream.writableFinished) later();
  else stream.once('finish', later);
}
