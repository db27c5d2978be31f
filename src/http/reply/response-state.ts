import { AsyncResource } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { writeLog } from '../../logging/report-error.ts';

// Taken when the module is loaded: fake timers of a test must not delay requests.
const { nextTick } = process;

/**
 * Whether a response waits for the responses to earlier requests of a pipelined connection. Work for it
 * should not begin yet: requests with effects must not run in parallel (RFC 9112 §9.3.2), and a queued
 * response never emits `close` when its connection is lost (Node 20 and 22), so that nothing would release
 * its files and memory.
 */
export function isQueued(res: ServerResponse): boolean {
  if (res.socket !== null) return false;
  // Without an earlier response on the socket, the response was created by a test or an adapter and never
  // gets a socket.
  const earlier = (res.req?.socket as (Socket & { _httpMessage?: unknown }) | undefined)?._httpMessage;
  return earlier !== undefined && earlier !== null && earlier !== res;
}

/**
 * Calls `run` when the earlier responses of the connection have been sent, in the asynchronous context of the
 * caller. Does not call it if the connection is lost before.
 */
export function whenFirst(res: ServerResponse, run: () => void): void {
  const bound = AsyncResource.bind(run);
  // Node updates the state of the response after the event.
  res.once('socket', () => nextTick(bound));
}

/** A response of the compatibility API of `node:http2`. */
interface Http2Response {
  readonly stream: { readonly destroyed?: boolean } | undefined;
}

/** Whether a response belongs to the compatibility API of `node:http2`. */
export const isHttp2 = (res: object): res is Http2Response => 'stream' in res;

/** Whether the client disconnected before the response was sent completely. */
export function isAborted(res: ServerResponse): boolean {
  if (res.destroyed) return true;
  // HTTP/2 closes streams independently of the socket. In HTTP/1 a response has a socket only during its turn.
  const connection = isHttp2(res) ? res.stream : (res.socket ?? res.req?.socket);
  return connection?.destroyed === true;
}

/** An error code of RST_STREAM (RFC 9113 §7). */
const INTERNAL_ERROR = 2;

/**
 * Destroys a response that is not complete. `destroy` of an HTTP/2 response resets its stream with NO_ERROR, and
 * clients take a body without Content-Length for complete then.
 *
 * @param cause - logged, because an error handler could not send another response
 */
export function destroyIncomplete(res: ServerResponse, cause?: unknown): void {
  if (cause !== undefined) writeLog('error', 'a response was destroyed after an error:', cause);
  const { stream } = res as ServerResponse & { readonly stream?: { close(code: number): void } };
  if (stream === undefined) res.destroy();
  else stream.close(INTERNAL_ERROR);
}
