import { STATUS_CODES } from 'node:http';
import type { Headers } from '../../http/reply/http-error.ts';
import { codeOf } from '../../http/reply/system-error.ts';
import { writeReply } from '../../http/reply/write-reply.ts';
import { warnOfSystem } from '../disk/warning.ts';
import type { RequestTriple } from './request-context.ts';

/** Responds with a status and its name as the body, which contains nothing from the request. */
export function sendStatus(
  { req, res }: Pick<RequestTriple, 'req' | 'res'>,
  status: number,
  headers: Headers = {},
): void {
  const body = `${STATUS_CODES[status]}\n`;
  const common = { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' };
  writeReply(req, res, { status, headers: { ...common, ...headers }, body });
}

/** Responds with 503 when a file keeps changing: the client may retry soon. */
export function sendUnavailable(request: Pick<RequestTriple, 'req' | 'res'>): void {
  sendStatus(request, 503, { 'Retry-After': '1' });
}

/** Responds with 503 when descriptors or memory ran out, and warns the operator. */
export function sendOutOfResources(request: Pick<RequestTriple, 'req' | 'res'>, error: unknown): void {
  const reason = `clients get 503 because a file cannot be read (${codeOf(error)})`;
  warnOfSystem(
    new Error(`${reason}; raise the limit of open files (ulimit -n), or the memory of the process`),
  );
  sendUnavailable(request);
}
