import type { IncomingMessage, ServerResponse } from 'node:http';

/** The callbacks by socket. One listener per socket serves any number of pipelined requests. */
const callbacks = new WeakMap<object, Set<() => void>>();

/**
 * Calls `closed` once when a response has ended or its client has disconnected. Returns a function that cancels this. The
 * `close` event of a response is not enough: on a pipelined connection that is lost, a response that waits for an earlier
 * one never emits it (Node 20 and 22).
 */
export function onClosed(res: ServerResponse, closed: () => void): () => void {
  const socket = socketOf(res);
  if (socket === undefined) {
    res.once('close', closed);
    return () => void res.off('close', closed);
  }
  const waiting = waitingOn(socket);
  const once = (): void => {
    if (!waiting.delete(once)) return;
    res.off('close', once);
    closed();
  };
  waiting.add(once);
  res.once('close', once);
  return () => {
    waiting.delete(once);
    res.off('close', once);
  };
}

/** Whether the client disconnected before the response was sent completely. */
export function isAborted(res: ServerResponse): boolean {
  return res.destroyed || socketOf(res)?.destroyed === true;
}

/** Returns the socket of a response; undefined for HTTP/2, where a stream closes independently of its socket. */
function socketOf({ req }: ServerResponse): IncomingMessage['socket'] | undefined {
  return req === undefined || req.httpVersionMajor >= 2 ? undefined : (req.socket ?? undefined);
}

function waitingOn(socket: IncomingMessage['socket']): Set<() => void> {
  const known = callbacks.get(socket);
  if (known !== undefined) return known;
  const waiting = new Set<() => void>();
  callbacks.set(socket, waiting);
  socket.once('close', () => {
    for (const once of [...waiting]) once();
  });
  return waiting;
}
