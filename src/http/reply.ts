import type { ServerResponse } from 'node:http';
import type { Headers } from './error.ts';

/** A whole answer as a plain value. */
export interface Reply {
  status: number;
  headers: Headers;
  body: string | Buffer | undefined;
}

/** Writes a reply once; does nothing when the answer was begun elsewhere or the client has gone. */
export function writeReply(res: ServerResponse, reply: Reply, headOnly: boolean): void {
  if (res.headersSent || res.destroyed) return;
  writeHead(res, reply);
  res.end(headOnly ? undefined : reply.body);
}

function writeHead(res: ServerResponse, { status, headers, body }: Reply): void {
  res.statusCode = status;
  for (const name in headers) res.setHeader(name, headers[name] as string);
  if (body !== undefined) {
    res.setHeader('content-length', typeof body === 'string' ? Buffer.byteLength(body) : body.length);
  }
}
