import * as graphql from 'graphql';
import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLError,
  type GraphQLFormattedError,
  type GraphQLSchema,
  visit,
} from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { ExecuteFunction } from '../../types/graphql.ts';
import type { StreamedResults } from '../../types/operation.ts';
import { stepOf } from '../options/rules.ts';
import { getOrCreate } from '../options/values.ts';
import { toGraphQLError } from './graphql-error.ts';
import { optionalExport, V17 } from './graphql-version.ts';
import { hasBatchResolvers } from './resolve-many.ts';
import { type Caller, executeSafely } from './safe-execution.ts';
import {
  type Caching,
  type Engine,
  type EngineSettings,
  type ExecutionInputs,
  type ExecutionOutcome,
  type FieldTracker,
  type IncrementalEngine,
  type IncrementalFormat,
  isThenable,
  type RemainingResults,
  type ValidatedOperation,
  withNativePromise,
} from './types.ts';

/** Creates an engine that calls a function like graphql-js's `execute` and stringifies the result. */
export function engineFromExecute(execute: ExecuteFunction): Engine {
  const run: ExecuteFunction = (args) => withNativePromise(execute(args));
  return (operation, settings) => {
    const { caching } = settings;
    const usesBatches = hasBatchResolvers(operation.schema);
    return executeOperation(operation, settings, (args, inputs) => {
      const caller = callerOf(settings, inputs, operation);
      if (caching === undefined && caller === undefined && !usesBatches) return run(args);
      return executeSafely(run, args, { inputs, track: caching && createTracker(caching, inputs), caller });
    });
  };
}

/**
 * The reference engine: graphql-js's own `execute`. Clients choose operations and disconnect, so the rejections
 * that graphql-js leaves unhandled must not end the process.
 */
export const graphqlJs: Engine = (operation, settings) => {
  const { caching } = settings;
  return executeOperation(operation, settings, (args, inputs) =>
    executeSafely(executeNonIncremental, args, {
      inputs,
      track: caching && createTracker(caching, inputs),
      caller: callerOf(settings, inputs, operation),
    }),
  );
};

type Run = (args: ExecutionArgs, inputs: ExecutionInputs) => ReturnType<ExecuteFunction>;

function executeOperation(
  operation: ValidatedOperation,
  settings: EngineSettings,
  run: Run,
): ReturnType<Engine> {
  return (inputs) => {
    const result = run(executionArgs(operation, inputs, settings), inputs);
    return isThenable(result)
      ? result.then((settled) => outcomeFromReturned(settled as ExecutionResult, settings, inputs))
      : outcomeFromReturned(result as ExecutionResult, settings, inputs);
  };
}

function outcomeFromReturned(
  result: ExecutionResult,
  settings: EngineSettings,
  inputs: ExecutionInputs,
): MaybePromise<ExecutionOutcome> {
  const isSingle = result.data !== undefined || result.errors !== undefined;
  const streamed = isSingle ? undefined : outcomeFromStream(result, settings, inputs);
  return streamed ?? outcomeFromResult(result, settings, inputs);
}

const callerOf = (
  { guards }: EngineSettings,
  inputs: ExecutionInputs,
  { visible }: ValidatedOperation,
): Caller | undefined =>
  guards !== undefined && (guards.authOf !== undefined || guards.appliesTo(inputs))
    ? { guards, inputs, visible }
    : undefined;

/** Creates the tracker that counts fields and sets `info.cacheControl`. */
function createTracker(
  caching: Caching,
  { caching: execution }: Pick<ExecutionInputs, 'caching'>,
): FieldTracker {
  execution?.expectFields();
  return (info, source) => {
    const definition = info.parentType.getFields()[info.fieldName];
    if (definition === undefined) return;
    const isRoot = info.path.prev === undefined;
    if (execution !== undefined && caching.isCounted(definition, isRoot)) execution.count(definition);
    const tags = execution === undefined ? undefined : caching.objectTagsOf(info.parentType, definition);
    if (tags !== undefined) execution?.addObjectTags(tags, source);
    Object.assign(info, { cacheControl: caching.controlFor(execution, definition, isRoot) });
  };
}

const NO_ERRORS: readonly GraphQLError[] = [];

/** Converts a result of graphql-js into an outcome. `errors` come first, as the specification advises (§7.1). */
export function outcomeFromResult(
  result: ExecutionResult,
  settings: EngineSettings,
  inputs: ExecutionInputs,
): ExecutionOutcome {
  if (result.errors === undefined || result.errors.length === 0) {
    if (result.data === undefined) {
      // It would be stringified as `{}`, which clients would accept as a response.
      throw new TypeError('The engine returned neither data nor errors');
    }
    const { extensions } = result;
    try {
      return { kind: 'data', body: JSON.stringify(result), errors: NO_ERRORS, extensions };
    } catch (error) {
      return failedOutcome([], [], error, settings, inputs);
    }
  }
  const refused = !('data' in result);
  // graphql-js adds one more error to report that coercion has stopped.
  const errors = refused ? result.errors.slice(0, settings.maxErrors) : result.errors;
  if (refused) for (const error of errors) setErrorCode(error, 'BAD_USER_INPUT');
  const { errors: _, data, ...others } = result;
  const formatted = settings.formatErrors(errors, inputs.origin);
  try {
    const members = JSON.stringify({ data, ...others }).slice(1);
    const body = `{"errors":${JSON.stringify(formatted)}${members === '}' ? '' : ','}${members}`;
    return { kind: refused ? 'refused' : 'partial', body, errors, extensions: result.extensions };
  } catch (error) {
    return failedOutcome(errors, formatted, error, settings, inputs);
  }
}

/** The outcome of an execution whose data cannot be written as JSON. Its other errors are known already. */
function failedOutcome(
  errors: readonly GraphQLError[],
  formatted: readonly GraphQLFormattedError[],
  thrown: unknown,
  settings: EngineSettings,
  { origin }: ExecutionInputs,
): ExecutionOutcome {
  const error = toGraphQLError(thrown);
  const all = [...formatted, ...settings.formatErrors([error], origin)];
  const body = `{"errors":${JSON.stringify(all)},"data":null}`;
  return { kind: 'partial', body, errors: [...errors, error] };
}

/** Sets `extensions.code` of an error, unless it has one. */
export function setErrorCode(error: GraphQLError, code: string): void {
  // `Reflect.set` does not throw: the extensions of an error that the application threw may be frozen.
  if (error.extensions['code'] === undefined) Reflect.set(error.extensions, 'code', code);
}

/** Creates graphql-js's arguments for one operation and one request. graphql 16 has no abort signals. */
export function executionArgs(
  operation: ValidatedOperation,
  inputs: ExecutionInputs,
  settings: Pick<EngineSettings, 'maxErrors'> & Partial<EngineSettings>,
): ExecutionArgs {
  // A literal without a spread: V8 turns a spread object that gets more properties into a slow dictionary.
  const args = {
    schema: operation.schema,
    document: operation.document,
    operationName: operation.operation.name?.value,
    rootValue: inputs.rootValue,
    contextValue: inputs.contextValue,
    variableValues: inputs.variableValues,
    abortSignal: V17 ? inputs.signal : undefined,
    fieldResolver: settings.fieldResolver,
    typeResolver: settings.typeResolver,
    options: { maxCoercionErrors: settings.maxErrors },
    hideSuggestions: settings.hideSuggestions,
  };
  return args as ExecutionArgs;
}

/** graphql 17 exports the two steps of `execute`; 16 does not. */
interface ExecuteSteps {
  validateExecutionArgs?: (args: ExecutionArgs) => readonly graphql.GraphQLError[] | object;
  executeRootSelectionSet?: (validated: object) => MaybePromise<ExecutionResult>;
}

const { validateExecutionArgs, executeRootSelectionSet } = graphql as ExecuteSteps;
const INCREMENTAL_DIRECTIVES = ['defer', 'stream'];

/** Documents without `@defer` and `@stream`, by the original documents. */
const withoutDirectives = new WeakMap<DocumentNode, DocumentNode>();

/**
 * Calls graphql-js's `execute`. In version 17 it throws if the schema defines `@defer` or `@stream`. A server
 * may ignore both directives and send one response, as 16 does, so they are removed from the document first.
 */
export const executeNonIncremental: ExecuteFunction = (args) => {
  const { schema, document } = args;
  if (validateExecutionArgs === undefined || executeRootSelectionSet === undefined) return execute(args);
  if (!declaresIncremental(schema)) return execute(args);
  const stripped = getOrCreate(withoutDirectives, document, () => removeIncrementalDirectives(document));
  const validated = validateExecutionArgs({ ...args, document: stripped });
  return Array.isArray(validated) ? { errors: validated } : executeRootSelectionSet(validated);
};

const execute = (args: ExecutionArgs): MaybePromise<ExecutionResult> =>
  graphql.execute(args) as MaybePromise<ExecutionResult>;

function removeIncrementalDirectives(document: DocumentNode): DocumentNode {
  return graphql.visit(document, {
    Directive: ({ name }) => (INCREMENTAL_DIRECTIVES.includes(name.value) ? null : undefined),
  });
}

const isStreamed = (result: object): result is StreamedResults =>
  Symbol.asyncIterator in result || ('initialResult' in result && 'subsequentResults' in result);

/**
 * Returns the outcome of an engine that returned several results: the first of them, with the others as
 * `rest`. Undefined for any other value.
 */
function outcomeFromStream(
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
  if (done) throw new TypeError('The engine returned an async iterable without a result');
  return results.outcomeOf(value);
}

/** The results of an engine, or the payloads of graphql-js, whose errors are masked and reported. */
class MaskedResults implements RemainingResults {
  /** See `RemainingResults`; only the format since 2024 has ids. */
  readonly openIds = new Set<string>();
  readonly #iterator: AsyncIterator<unknown>;
  readonly #mask: (result: unknown) => object;
  #isReturned = false;

  constructor(iterator: AsyncIterator<unknown>, mask: (result: unknown) => object) {
    this.#iterator = iterator;
    this.#mask = mask;
  }

  outcomeOf(first: unknown): ExecutionOutcome {
    const { errors = [], extensions } = Object(first) as ResultPart;
    const kind = errors.length > 0 ? 'partial' : 'data';
    return { kind, body: this.format(first), errors, extensions, rest: this };
  }

  async nextResult(): Promise<IteratorResult<unknown>> {
    if (this.#isReturned) return { done: true, value: undefined };
    return stepOf(await this.#iterator.next());
  }

  async next(): Promise<IteratorResult<string, undefined>> {
    const { done, value } = await this.nextResult();
    return done ? { done, value: undefined } : { done: false, value: this.format(value) };
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
  format(result: unknown): string {
    try {
      const text = JSON.stringify(this.#mask(result));
      const { pending = [], completed = [] } = result as ResultPart;
      for (const { id } of pending) if (id !== undefined) this.openIds.add(id);
      for (const { id } of completed) if (id !== undefined) this.openIds.delete(id);
      return text;
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
  readonly pending?: readonly { readonly id?: string }[];
  readonly incremental?: readonly object[];
  readonly completed?: readonly { readonly id?: string }[];
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

/** The result of graphql 17 for an operation with deferred parts. */
interface IncrementalResults {
  readonly initialResult: ResultPart & { readonly data: unknown };
  readonly subsequentResults: AsyncGenerator<ResultPart, void, void>;
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

/** Whether a schema declares `@defer` or `@stream`. */
export const declaresIncremental = (schema: GraphQLSchema): boolean =>
  INCREMENTAL_DIRECTIVES.some((name) => schema.getDirective(name) != null);

/** Returns which of `@defer` and `@stream` a document uses. */
export function incrementalDirectives(document: DocumentNode): ReadonlySet<string> {
  const found = new Set<string>();
  visit(document, {
    Directive({ name }) {
      if (INCREMENTAL_DIRECTIVES.includes(name.value)) found.add(name.value);
    },
  });
  return found;
}

/** Executes an operation with graphql-js: the first payload is the outcome, the others are its `rest`. */
export const executeIncrementally: IncrementalEngine = (operation, settings, format) => {
  const execute = EXECUTORS[format] as ExecuteIncrementally;
  return (inputs) => {
    const args = executionArgs(operation, inputs, settings);
    const { caching } = settings;
    const track = caching && createTracker(caching, inputs);
    const onResult = (returned: ExecutionResult | IncrementalResults): ExecutionOutcome => {
      // An operation whose directives are all disabled has an ordinary result.
      if (!('initialResult' in returned)) return outcomeFromResult(returned, settings, inputs);
      return outcomeOfPayloads(returned, settings, inputs);
    };
    const result = executeSafely(execute, args, {
      inputs,
      track,
      caller: callerOf(settings, inputs, operation),
      readsLater: true,
    });
    return isThenable(result) ? result.then(onResult) : onResult(result);
  };
};

function outcomeOfPayloads(
  { initialResult, subsequentResults }: IncrementalResults,
  settings: EngineSettings,
  inputs: ExecutionInputs,
): ExecutionOutcome {
  const { errors = [], data, ...others } = initialResult;
  const first: ExecutionResult = {
    ...(errors.length > 0 && { errors }),
    data: data as Record<string, unknown> | null,
  };
  const outcome = outcomeFromResult(first, settings, inputs);
  // Without data the other payloads belong to nothing.
  if (data !== null && outcome.errors.length > errors.length) {
    subsequentResults.return().catch(() => undefined);
    return outcome;
  }
  const rest = new MaskedResults(subsequentResults, (result) => maskErrors(result, settings, inputs));
  return { ...outcome, body: `${outcome.body.slice(0, -1)},${rest.format(others).slice(1)}`, rest };
}
