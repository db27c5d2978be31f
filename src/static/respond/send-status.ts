import { STATUS_CODES } from 'node:http';
import type { Headers } from '../../http/reply/http-error.ts';
import { writeReply } from '../../http/reply/write-reply.ts';
import type { Exchange } from './request-context.ts';

/** Answers with a status and its name, nothing of the request in it. */
export function refuse(exchange: Pick<Exchange, 'req' | 'res'>, status: number, headers: Headers = {}): void {
  const body = `${STATUS_CODES[status]}\n`;
  const common = { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' };
  writeReply(
    exchange.res,
    { status, headers: { ...common, ...headers }, body },
    exchange.req.method === 'HEAD',
  );
}

/** Out of descriptors, or a file that never holds still: worth another try soon, and nothing is remembered. */
export function refuseBusy(exchange: Exchange): void {
  refuse(exchange, 503, { 'Retry-After': '1' });
}
