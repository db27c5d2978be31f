import { type Headers, HttpError } from '../http/error.ts';
import type { Answer, Answers } from './answer.ts';
import type { HttpSettings } from './http-settings.ts';
import { excessOf } from './nesting.ts';
import type { Result } from './operate.ts';

type Options = Pick<HttpSettings, 'batching' | 'limits'>;

/**
 * The operations of a parsed body: one, or a batch where batching is on. Variables are measured here, all together,
 * before anything is prepared.
 *
 * @throws HttpError 400 for a batch where there may be none, 413 for one that is too long.
 */
export function operationsOf(
  body: unknown,
  { batching, limits }: Options,
): { list: readonly unknown[]; batch: boolean } {
  const batch = Array.isArray(body);
  if (batch && !batching)
    throw new HttpError(400, 'Batches are switched off here (option batching)', { code: 'BATCHING_OFF' });
  const list: readonly unknown[] = batch ? body : [body];
  if (list.length === 0) throw new HttpError(400, 'The batch is empty', { code: 'BAD_REQUEST' });
  if (list.length > limits.batch) {
    throw new HttpError(413, `The batch has more than ${limits.batch} operations`, { code: 'LIMIT_BATCH' });
  }
  const excess = excessOf(body, limits.variables);
  if (excess !== undefined) throw new HttpError(400, excess, { code: 'LIMIT_VARIABLES' });
  return { list, batch };
}

/** The answers of a batch as one: a JSON list in the order of the operations. */
export function joinResults(results: readonly Result[], answers: Answers, type: string): Answer {
  const parts = results.map((result) =>
    'body' in result ? answers.ofOutcome(result, type) : answers.ofRefusal(result, type),
  );
  const [first] = parts;
  const same = parts.every(({ status }) => status === first?.status);
  const headers: Headers = {};
  for (const part of parts) Object.assign(headers, part.headers);
  return {
    status: same && first !== undefined ? first.status : 200,
    type,
    body: `[${parts.map(({ body }) => body.toString()).join(',')}]`,
    headers,
    errors: parts.flatMap(({ errors }) => errors),
  };
}
