import type { IncomingMessage, ServerResponse } from 'node:http';

/** Requests with `Expect: 100-continue` that nobody has begun to read, so that no 100 was sent. */
const awaitingContinue = new WeakSet<IncomingMessage>();

/**
 * For a server's `checkContinue` event: holds the `100 Continue` back until something reads the body (any body parser,
 * `pipe`, `for await`), so that an answer given before (413, 415, 403, 401) spares the client from sending the body at all
 * (RFC 9110 §10.1.1). Such an answer closes the connection: whether the body still comes cannot be known.
 * Node otherwise sends the 100 by itself before any middleware runs.
 */
export function deferContinue(req: IncomingMessage, res: ServerResponse): void {
  const { shouldKeepAlive } = res;
  res.shouldKeepAlive = false;
  awaitingContinue.add(req);
  req._read = function readHeld(size: number): void {
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
