import type { ExecutionResult, GraphQLError } from 'graphql';
import type { StreamedResults } from '../../types/operation.ts';
import type { EngineSettings } from './engine.ts';
import type { ExecutionInputs, ExecutionOutcome } from './types.ts';

const isStreamed = (result: object): result is StreamedResults =>
  Symbol.asyncIterator in result || ('initialResult' in result && 'subsequentResults' in result);

/** Returns the outcome of an engine that returned several results, or undefined for any other value. */
export function outcomeFromStream(
  returned: ExecutionResult,
  settings: EngineSettings,
  inputs: ExecutionInputs,
): ExecutionOutcome | undefined {
  if (!isStreamed(returned)) return undefined;
  const results = 'initialResult' in returned ? new StartedResults(returned) : returned;
  if (inputs.acceptsStreams !== true) {
    results[Symbol.asyncIterator]()
      .return?.()
      ?.then(undefined, () => undefined);
    throw new TypeError('The engine returned an async iterable of results, which only sockets deliver');
  }
  const toOutcome = (result: unknown): ExecutionOutcome => {
    const body = JSON.stringify(maskErrors(result, settings, inputs));
    return { kind: 'data', body, errors: [] };
  };
  return { kind: 'data', body: '', errors: [], stream: { results, toOutcome } };
}

/** Results whose first is known. Not a generator: `return` of a generator would wait for its next result. */
class StartedResults implements AsyncIterable<unknown> {
  readonly #rest: AsyncIterator<unknown>;
  #first: IteratorResult<unknown> | undefined;

  constructor(given: {
    readonly initialResult: unknown;
    readonly subsequentResults: AsyncIterator<unknown>;
  }) {
    this.#first = { done: false, value: given.initialResult };
    this.#rest = given.subsequentResults;
  }

  [Symbol.asyncIterator](): AsyncIterator<unknown> {
    return {
      next: async () => {
        const first = this.#first;
        this.#first = undefined;
        return first ?? this.#rest.next();
      },
      return: async () => (await this.#rest.return?.()) ?? { done: true, value: undefined },
    };
  }
}

/** A result, or a part of an incremental one. */
interface ResultPart {
  readonly errors?: readonly GraphQLError[];
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
