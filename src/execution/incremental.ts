import type { DocumentNode, ExecutionArgs, ExecutionResult, GraphQLError, GraphQLSchema } from 'graphql';
import { visit } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { EngineSettings, IncrementalEngine } from './engine.ts';
import { executionArgsWith } from './execution-args.ts';
import { createTracker, outcomeFromResult } from './graphql-js.ts';
import { optionalExport } from './graphql-version.ts';
import { createGuard } from './guard/execute-guarded.ts';
import type { ExecutionGuard } from './guard/guarded-execution.ts';
import { type ExecutionInputs, type ExecutionOutcome, type IncrementalFormat, isThenable } from './types.ts';

/** The result of graphql 17 for an operation with deferred parts. */
interface IncrementalResults {
  readonly initialResult: InitialPayload;
  readonly subsequentResults: AsyncGenerator<Payload, void, void>;
}

interface WithErrors {
  readonly errors?: readonly GraphQLError[];
}

/** A payload after the first one, in either format. */
interface Payload {
  readonly incremental?: readonly WithErrors[];
  readonly completed?: readonly WithErrors[];
}

interface InitialPayload extends Payload, WithErrors {
  readonly data: unknown;
}

type ExecuteIncrementally = (args: ExecutionArgs) => MaybePromise<ExecutionResult | IncrementalResults>;

/** The functions of graphql 17 for each format. */
const EXECUTORS: Readonly<Record<IncrementalFormat, unknown>> = {
  'v0.2': optionalExport('experimentalExecuteIncrementally'),
  20220824: optionalExport('legacyExecuteIncrementally'),
};

/** Whether graphql-js is able to execute `@defer` and `@stream`. */
export const SUPPORTS_INCREMENTAL: boolean = Object.values(EXECUTORS).every(
  (execute) => typeof execute === 'function',
);

const DIRECTIVES: readonly string[] = ['defer', 'stream'];

/** Whether a schema declares `@defer` or `@stream`. */
export const declaresIncremental = (schema: GraphQLSchema): boolean =>
  DIRECTIVES.some((name) => schema.getDirective(name) != null);

/** Returns which of `@defer` and `@stream` a document uses. */
export function incrementalDirectives(document: DocumentNode): ReadonlySet<string> {
  const found = new Set<string>();
  visit(document, {
    Directive({ name }) {
      if (DIRECTIVES.includes(name.value)) found.add(name.value);
    },
  });
  return found;
}

/** Executes an operation with graphql-js: the first payload is the outcome, the others are its `rest`. */
export const executeIncrementally: IncrementalEngine = (operation, settings, format) => {
  const execute = EXECUTORS[format] as ExecuteIncrementally;
  return (inputs) => {
    const args = executionArgsWith(settings, operation, inputs);
    const { caching } = settings;
    const guard = createGuard(args, caching && createTracker(caching, inputs));
    // Deferred parts read values after the promises in them may have rejected.
    guard.fail();
    const abort = (): void => guard.end(undefined);
    inputs.signal?.addEventListener('abort', abort, { once: true });
    const onResult = (returned: ExecutionResult | IncrementalResults): ExecutionOutcome => {
      // An operation whose directives are all disabled has an ordinary result.
      if ('initialResult' in returned) return toOutcome(returned, settings, inputs, guard);
      guard.end(returned);
      return outcomeFromResult(returned, settings, inputs);
    };
    const result = guard.run(execute, args);
    return isThenable(result)
      ? result.then(onResult, (error) => {
          abort();
          throw error;
        })
      : onResult(result);
  };
};

function toOutcome(
  { initialResult, subsequentResults }: IncrementalResults,
  settings: EngineSettings,
  inputs: ExecutionInputs,
  guard: ExecutionGuard,
): ExecutionOutcome {
  const { errors = [], data, ...others } = initialResult;
  const format = (payload: Payload): Payload => formatPayload(payload, settings, inputs);
  const first = { ...(errors.length > 0 && { errors: settings.formatErrors(errors, inputs.origin) }), data };
  return {
    kind: errors.length > 0 ? 'partial' : 'data',
    body: JSON.stringify({ ...first, ...format(others) }),
    errors,
    rest: {
      next: async () => {
        const { done, value } = await subsequentResults.next();
        if (done !== true) return { done: false, value: JSON.stringify(format(value)) };
        guard.end({});
        return { done, value: undefined };
      },
      return: async () => {
        guard.end(undefined);
        await subsequentResults.return();
        return { done: true, value: undefined };
      },
    },
  };
}

/** Masks, formats and reports the errors of deferred parts. */
function formatPayload(
  payload: Payload,
  { formatErrors }: EngineSettings,
  { origin }: ExecutionInputs,
): Payload {
  const format = (entry: WithErrors): object =>
    entry.errors === undefined ? entry : { ...entry, errors: formatErrors(entry.errors, origin) };
  const { incremental, completed } = payload;
  return {
    ...payload,
    ...(incremental && { incremental: incremental.map(format) }),
    ...(completed && { completed: completed.map(format) }),
  };
}
