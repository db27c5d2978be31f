import type { IncomingMessage, ServerResponse } from 'node:http';
import { deferContinue } from '../http/body/expect-continue.ts';

/** The members of a server that are used here. */
interface ContinueServer {
  on(event: 'checkContinue', listener: (req: IncomingMessage, res: ServerResponse) => void): unknown;
  listenerCount(event: 'checkContinue'): number;
  emit(event: 'request', req: IncomingMessage, res: ServerResponse): unknown;
}

/**
 * Lets an app refuse a request with `Expect: 100-continue` before the client sends the body (RFC 9110
 * §10.1.1). If the user listens to `checkContinue`, that listener alone handles these requests, as on any
 * Node server.
 */
export function handleExpectContinue(server: ContinueServer): void {
  server.on('checkContinue', (req, res) => {
    if (server.listenerCount('checkContinue') > 1) return;
    if (req.httpVersionMajor < 2) deferContinue(req, res);
    else res.writeContinue();
    server.emit('request', req, res);
  });
}
