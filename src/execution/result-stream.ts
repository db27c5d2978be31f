import type { ExecutionResult, GraphQLError } from 'graphql';
import type { StreamedResults } from '../../types/operation.ts';
import type { EngineSettings } from './engine.ts';
import type { ExecutionInputs, ExecutionOutcome, RemainingResults } from './types.ts';

const isStreamed = (result: object): result is StreamedResults =>
  Symbol.asyncIterator in result || ('initialResult' in result && 'subsequentResults' in result);

/**
 * Returns the outcome of an engine that returned several results: the first of them, with the others as
 * `rest`. Undefined for any other value.
 */
export function outcomeFromStream(
  returned: ExecutionResult,
  settings: EngineSettings,
  inputs: ExecutionInputs,
): Promise<ExecutionOutcome> | undefined {
  if (!isStreamed(returned)) return undefined;
  const iterator =
    'initialResult' in returned ? returned.subsequentResults : returned[Symbol.asyncIterator]();
  const results = new MaskedResults(iterator, (result) => maskErrors(result, settings, inputs));
  if (inputs.acceptsStreams !== true) {
    results.return().catch(() => undefined);
    throw new TypeError('The engine returned an async iterable of results, which only sockets deliver');
  }
  return 'initialResult' in returned
    ? Promise.resolve(results.outcomeOf(returned.initialResult))
    : firstOf(results, inputs.signal);
}

/** Waits for the first result. The iterator is returned if the client disconnects meanwhile. */
async function firstOf(results: MaskedResults, signal: AbortSignal | undefined): Promise<ExecutionOutcome> {
  const onAbort = (): void => void results.return().catch(() => undefined);
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener('abort', onAbort, { once: true });
  const { done, value } = await results.nextResult();
  signal?.removeEventListener('abort', onAbort);
  if (done === true) throw new TypeError('The engine returned an async iterable without a result');
  return results.outcomeOf(value);
}

/** The results of an engine, whose errors are masked and reported. */
class MaskedResults implements RemainingResults {
  readonly #iterator: AsyncIterator<unknown>;
  readonly #mask: (result: unknown) => object;
  #isReturned = false;

  constructor(iterator: AsyncIterator<unknown>, mask: (result: unknown) => object) {
    this.#iterator = iterator;
    this.#mask = mask;
  }

  /** The outcome of the first result. */
  outcomeOf(first: unknown): ExecutionOutcome {
    const { errors = [], extensions } = Object(first) as ResultPart;
    const kind = errors.length > 0 ? 'partial' : 'data';
    return { kind, body: this.#format(first), errors, extensions, rest: this };
  }

  async nextResult(): Promise<IteratorResult<unknown>> {
    if (this.#isReturned) return { done: true, value: undefined };
    return this.#iterator.next();
  }

  async next(): Promise<IteratorResult<string, undefined>> {
    const { done, value } = await this.nextResult();
    return done === true ? { done, value: undefined } : { done: false, value: this.#format(value) };
  }

  /** Calls `return` of the iterator once. */
  async return(): Promise<IteratorResult<string, undefined>> {
    if (!this.#isReturned) {
      this.#isReturned = true;
      await this.#iterator.return?.();
    }
    return { done: true, value: undefined };
  }

  /** A result without a JSON form ends the iteration, so its source is released. */
  #format(result: unknown): string {
    try {
      return JSON.stringify(this.#mask(result));
    } catch (error) {
      this.return().catch(() => undefined);
      throw error;
    }
  }
}

/** A result, or a part of an incremental one. */
interface ResultPart {
  readonly errors?: readonly GraphQLError[];
  readonly extensions?: Readonly<Record<string, unknown>>;
  readonly incremental?: readonly object[];
  readonly completed?: readonly object[];
}

/** Masks and reports the errors of a result and of its incremental parts. */
function maskErrors(result: unknown, settings: EngineSettings, inputs: ExecutionInputs): object {
  if (typeof result !== 'object' || result === null) {
    throw new TypeError('The engine returned a stream with a result that is not an object');
  }
  const part: ResultPart = result;
  const mask = (each: object): object => maskErrors(each, settings, inputs);
  return {
    ...part,
    ...(part.errors && { errors: settings.formatErrors(part.errors, inputs.origin) }),
    ...(part.incremental && { incremental: part.incremental.map(mask) }),
    ...(part.completed && { completed: part.completed.map(mask) }),
  };
}
