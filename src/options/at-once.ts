import { type Owner, wrongAnswer } from './settle.ts';

/**
 * What the function of an option answered. A promise would pass for `true`, and open what it was to close: it is refused.
 *
 * @throws TypeError (code `ERR_OPTION`) for a promise.
 */
export function atOnce<T>(answer: T, owner: Owner, option: string): T {
  if (typeof (answer as { then?: unknown } | null | undefined)?.then !== 'function') return answer;
  // Nobody waits for it, so its failure is nobody's.
  Promise.resolve(answer).catch(() => undefined);
  throw wrongAnswer(owner, option, answer, 'an answer at once');
}
