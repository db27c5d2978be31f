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
  res.statusCode = reply.status;
  for (const name in reply.headers) res.setHeader(name, reply.headers[name] as string);
  const body = typeof reply.body === 'string' ? Buffer.from(reply.body) : reply.body;
  if (body !== undefined) res.setHeader('content-length', body.length);
  res.end(headOnly ? undefined : body);
}
