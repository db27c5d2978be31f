import type { IncomingMessage, ServerResponse } from 'node:http';
import { deferContinue } from '../http/body/expect-continue.ts';

/** The part of a server that is needed here. */
interface ContinueServer {
  on(event: 'checkContinue', listener: (req: IncomingMessage, res: ServerResponse) => void): unknown;
  listenerCount(event: 'checkContinue'): number;
  emit(event: 'request', req: IncomingMessage, res: ServerResponse): unknown;
}

/**
 * Lets an app refuse a request with `Expect: 100-continue` before its body is sent (RFC 9110 §10.1.1). Somebody else's
 * listener for such requests is left alone, as it is on a server of Node's own.
 */
export function answerContinue(server: ContinueServer): void {
  server.on('checkContinue', (req, res) => {
    if (server.listenerCount('checkContinue') > 1) return;
    if (req.httpVersionMajor < 2) deferContinue(req, res);
    else res.writeContinue();
    server.emit('request', req, res);
  });
}
