import type { IncomingMessage, ServerResponse } from 'node:http';

/** The callbacks of a connection's responses. One listener per socket serves any number of pipelined requests. */
const callbacks = new WeakMap<object, Set<() => void>>();

/**
 * Calls back once when a response has ended or its client has left, and returns a function that cancels. The response's own
 * `close` event is not enough: a response that waits for an earlier one of a pipelined connection never emits it when the
 * connection is lost (Node 20 and 22).
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

/** Whether the client has left before the response was sent completely. */
export function isAborted(res: ServerResponse): boolean {
  return res.destroyed || socketOf(res)?.destroyed === true;
}

/** Undefined over HTTP/2, where every stream ends by itself. */
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
