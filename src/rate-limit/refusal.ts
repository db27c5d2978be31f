import { GraphQLError } from 'graphql';
import type { RequestError } from '../execution/types.ts';
import { type Headers, HttpError } from '../http/reply.ts';

const CODE = 'RATE_LIMITED';

const messageOf = (reason: string, retryAfter: number): string => `${reason}; retry after ${retryAfter} s`;

/** The refusal of a client that has reached a limit. `retryAfter` is in seconds. */
export const tooMany = (reason: string, retryAfter: number, headers: Headers = {}): HttpError =>
  new HttpError(429, messageOf(reason, retryAfter), {
    headers: { ...headers, 'retry-after': String(retryAfter) },
    code: CODE,
  });

/** Refuses one operation: 429 over HTTP, and an error over a socket, which stays open. */
export function refuseOperation({ message, status, headers }: HttpError): RequestError {
  const extensions = { code: CODE, retryAfter: Number(headers['retry-after']), http: { status, headers } };
  return { kind: 'error', errors: [new GraphQLError(message, { extensions })], status };
}

/** Refuses one field, whose operation goes on. */
export const refuseField = (reason: string, retryAfter: number): GraphQLError =>
  new GraphQLError(messageOf(reason, retryAfter), { extensions: { code: CODE, retryAfter } });
