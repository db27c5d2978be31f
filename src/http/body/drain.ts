import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers';
import { awaitsContinue } from './expect-continue.ts';

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
  if (draining.has(req) || req.destroyed || awaitsContinue(req)) return;
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
