import type { GraphQLParams } from '../execution/types.ts';
import { type Headers, HttpError } from '../http/reply/http-error.ts';
import type { HttpSettings } from './options.ts';
import { paramsOfBody } from './request/params.ts';
import type { Answer, Answers } from './response/response.ts';
import type { Result } from './run-operation.ts';

/** What the operations of one batch have asked for together: they share the limits of one operation. */
export interface Spent {
  fields: number;
  rootFields: number;
}

type Options = Pick<HttpSettings, 'batching' | 'limits'>;

/**
 * The operations of a parsed body: one, or a list of them where batching is on.
 *
 * @throws HttpError as `paramsOfBatch`, and 400 for what is no request.
 */
export function paramsIn(body: unknown, options: Options): readonly GraphQLParams[] {
  return Array.isArray(body) ? paramsOfBatch(body, options) : [paramsOfBody(body)];
}

/**
 * The operations of a list.
 *
 * @throws HttpError 400 where batches are off, 413 for one that is too long.
 */
export function paramsOfBatch(
  list: readonly unknown[],
  { batching, limits }: Options,
): readonly GraphQLParams[] {
  if (!batching) {
    throw new HttpError(400, 'Batches are switched off here (option batching)', { code: 'BATCHING_OFF' });
  }
  if (list.length === 0) throw new HttpError(400, 'The batch is empty', { code: 'BAD_REQUEST' });
  if (list.length > limits.batch) {
    throw new HttpError(413, `The batch has more than ${limits.batch} operations`, { code: 'LIMIT_BATCH' });
  }
  return list.map(paramsOfBody);
}

/** The answers of a batch as one: a JSON list in the order of the operations. */
export function joinResults(results: readonly Result[], answers: Answers, type: string): Answer {
  const parts = results.map((result) => answers.ofResult(result, type));
  const statuses = new Set(parts.map(({ status }) => status));
  const headers: Headers = {};
  for (const part of parts) Object.assign(headers, part.headers);
  return {
    status: statuses.size === 1 ? (parts[0]?.status ?? 200) : 200,
    type,
    body: `[${parts.map(({ body }) => body.toString()).join(',')}]`,
    headers,
    cause: {
      get errors() {
        return parts.flatMap(({ cause }) => cause.errors);
      },
    },
  };
}
