import type { IncomingMessage, ServerResponse } from 'node:http';

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

/** Whether the client still waits for permission to send the body. */
export function awaitsContinue(req: IncomingMessage): boolean {
  return awaitingContinue.has(req);
}
