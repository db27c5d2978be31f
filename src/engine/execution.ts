import type {
  FieldNode,
  FragmentDefinitionNode,
  GraphQLField,
  GraphQLFieldResolver,
  GraphQLObjectType,
  GraphQLOutputType,
  GraphQLResolveInfo,
  GraphQLSchema,
  GraphQLTypeResolver,
  OperationDefinitionNode,
  ResponsePath,
  SourceLocation,
} from 'graphql';
import * as graphql from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import type { LoadWatch } from '../execution/n-plus-one.ts';
import {
  type Caching,
  type EngineSettings,
  type ExecutionInputs,
  type ExecutionOutcome,
  isThenable,
} from '../execution/types.ts';
import type { UnusedValues } from '../execution/unused-values.ts';
import {
  type BufferPool,
  type PooledBuffer,
  RESPONSE_START,
  type Sink,
  type StaticText,
  useBuffer,
  withViews,
} from './json.ts';
import type { Found } from './payloads.ts';

/** One operation of one document, with the data that its compilation and execution need. */
export interface Program {
  readonly schema: GraphQLSchema;
  /** The schema that introspection shows. */
  readonly visible: GraphQLSchema;
  readonly operation: OperationDefinitionNode;
  readonly rootType: GraphQLObjectType;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  /** The `fieldResolver` option; undefined for graphql-js's default. */
  readonly fieldResolver: GraphQLFieldResolver<unknown, unknown> | undefined;
  /** The `typeResolver` option; undefined for graphql-js's default. */
  readonly typeResolver: GraphQLTypeResolver<unknown, unknown> | undefined;
  readonly settings: EngineSettings;
  /** Whether the caller is checked: the program is for callers who may not see everything that the operation selects. */
  readonly isRestricted: boolean;
  readonly pool: BufferPool;
  /** The size of the last response, which decides the size of the next working buffer. */
  expectedBytes: number;
  /** The last result of a subscription, if it is short. */
  lastEvent: Buffer | undefined;
}

export const WAITING = 0;
/** A child has failed and its error is propagating. */
export const FAILED = 1;
export const DONE = 2;

/**
 * The state of one execution. A synchronous run is the code between two waits; it appends to `buf`. A
 * position that waits for a promise becomes a Pending; the text since the last one is the open segment, from
 * `segment` to `pos`.
 */
export class Execution implements Sink {
  buffer: PooledBuffer;
  buf: Buffer;
  view: DataView;
  readonly pool: BufferPool;
  pos: number = RESPONSE_START.length;
  segment: number = RESPONSE_START.length;
  /** The positions that wait since the current synchronous run began. */
  pending: Pending[] = [];
  /** A synchronous run is in progress. A thenable that settles in it has to wait for its end. */
  running = true;
  /** The execution has an outcome or was aborted, so it may no longer use the buffer. */
  finished = false;
  errors: FieldError[] | undefined = undefined;
  /** The positions that an error has set to null; undefined in it stands for `data`. */
  nulledPaths: Set<ResponsePath | undefined> | undefined = undefined;
  /** graphql 16: the error of an object that still waits for the siblings of the field that failed. */
  pendingError: FieldError | undefined = undefined;
  /** Settles the promise of an asynchronous execution. */
  resolve: ((outcome: ExecutionOutcome) => void) | undefined = undefined;
  reject: ((reason: unknown) => void) | undefined = undefined;
  removeAbortListener: (() => void) | undefined = undefined;
  /** The functions of `info`, created for the first resolver that needs `info`. */
  infoFunctions: SignalFunction | undefined = undefined;
  /** The values that the execution does not use any more (see execution/unused-values.ts). */
  unusedValues: UnusedValues | undefined = undefined;
  abortResolvers: ((reason?: unknown) => void) | undefined = undefined;
  /** The parts that the execution defers; undefined if it is not incremental. */
  deferred: Found | undefined = undefined;
  readonly program: Program;
  readonly inputs: ExecutionInputs;
  /** The coerced variables for `info`: a map (16), or `{ sources, coerced }` (17). */
  readonly variables: Record<string, unknown>;
  /** The coerced variables by name. */
  readonly values: Record<string, unknown>;

  constructor(
    program: Program,
    inputs: ExecutionInputs,
    variables: Record<string, unknown>,
    values: Record<string, unknown>,
  ) {
    this.program = program;
    this.inputs = inputs;
    this.variables = variables;
    this.values = values;
    this.pool = program.pool;
    this.buffer = program.pool.take(program.expectedBytes);
    this.buf = this.buffer.buf;
    this.view = this.buffer.view;
  }
}

/**
 * Collects the errors of an asynchronous iterable while it is read; only the error with the lowest index is
 * reported.
 */
export interface ErrorCollector {
  add(error: FieldError, index: number): void;
  first(): FieldError | undefined;
}

/** A position whose text is incomplete, because it waits for a promise, its children, or both in turn. */
export class Pending {
  /** The parent position; undefined for the root, and if an ancestor has failed. */
  parent: Pending | undefined = undefined;
  children: Pending[] | undefined = undefined;
  /** The parent's text before this position. */
  precedingStart = 0;
  precedingEnd = 0;
  /** The start of this position's text; with children, of the text after the last child. */
  start = 0;
  end = 0;
  /** The number of children (and running iterations) that are not done. */
  openChildren = 0;
  /** The number of promises that graphql-js would wrap around the value (see promises.ts). */
  promiseDepth = 0;
  state: number = WAITING;
  isNull = false;
  /** Successful positions below also have to be delayed as in graphql-js. */
  countsMicrotasks = false;
  pendingError: FieldError | undefined = undefined;
  /** Called when the position is done, for the root and for the fields of a mutation. */
  onDone: (() => void) | undefined = undefined;
  /** The number of microtasks from a child's failure to its handler, if the shape does not determine it. */
  childErrorMicrotasks: number | undefined = undefined;
  errorCollector: ErrorCollector | undefined = undefined;
  /** Changes with each subscription, so that the second callback of a faulty thenable is ignored. */
  subscriptionId = 0;
  readonly ex: Execution;
  readonly position: ErrorPosition;
  path: ResponsePath | undefined;

  constructor(ex: Execution, position: ErrorPosition, path: ResponsePath | undefined) {
    this.ex = ex;
    this.position = position;
    this.path = path;
  }
}

/** Sets a position to null and keeps its error, unless the position or one of its ancestors is null already. */
export function addError(ex: Execution, error: FieldError, path: ResponsePath | undefined): void {
  ex.nulledPaths ??= new Set();
  for (let at = path; at !== undefined; at = at.prev) if (ex.nulledPaths.has(at)) return;
  if (ex.nulledPaths.has(undefined)) return;
  ex.nulledPaths.add(path);
  ex.errors ??= [];
  ex.errors.push(error);
}

/** graphql 17 rejects aborted executions with this error; 16 has no abort signals. */
const { AbortedGraphQLExecutionError: AbortedError } = graphql as {
  AbortedGraphQLExecutionError?: new (reason: unknown) => Error;
};

/** Replaces the buffer of an execution that has returned its buffer. */
export const NO_BUFFER: PooledBuffer = withViews(Buffer.alloc(0));

/**
 * Returns the working buffer and drops the references to values of the user. Promises whose values are no
 * longer needed may keep the execution alive.
 */
export function releaseExecution(ex: Execution): void {
  ex.removeAbortListener?.();
  ex.removeAbortListener = undefined;
  ex.program.expectedBytes = ex.pos;
  if (ex.buffer !== NO_BUFFER) ex.pool.give(ex.buffer);
  useBuffer(ex, NO_BUFFER);
  if (ex.pending.length > 0) ex.pending = [];
  ex.errors = undefined;
  ex.nulledPaths = undefined;
  ex.resolve = undefined;
  ex.reject = undefined;
}

/** Rejects an asynchronous execution. A synchronous run in progress keeps the buffer until its end. */
export function abortExecution(ex: Execution, reason: unknown): void {
  if (ex.finished) return;
  const { reject } = ex;
  ex.finished = true;
  ex.abortResolvers?.(reason);
  if (!ex.running) releaseExecution(ex);
  reject?.(AbortedError === undefined ? reason : new AbortedError(reason));
}

/** Ends a synchronous run. An execution that was aborted meanwhile returns its buffer now. */
export function endSyncRun(ex: Execution): void {
  ex.running = false;
  if (ex.finished) releaseExecution(ex);
}

/** The field that an error belongs to. */
interface ErrorField {
  readonly name: string;
  readonly parentType: GraphQLObjectType;
  readonly nodes: readonly FieldNode[];
  /** The locations of the nodes in the document. Computed when an error first needs them. */
  locations(): readonly SourceLocation[] | undefined;
}

/** The kind of a position: graphql-js joins promises differently for leaves, objects and lists (see promises.ts). */
export type Shape = 'leaf' | 'object' | 'list';

/**
 * The properties of a response position that error propagation needs (GraphQL specification, "Handling
 * Execution Errors").
 */
export interface ErrorPosition {
  readonly field: ErrorField | undefined;
  /** Whether a resolver may return null, and an error sets this position to null. */
  readonly nullable: boolean;
  readonly shape: Shape;
}

/** A failure and its position. Cheaper than a GraphQLError, which is created only for the response. */
export class FieldError {
  readonly reason: unknown;
  readonly field: ErrorField | undefined;
  readonly path: ResponsePath | undefined;
  readonly #isFieldError = true;

  constructor(reason: unknown, field: ErrorField | undefined, path: ResponsePath | undefined) {
    this.reason = reason;
    this.field = field;
    this.path = path;
  }

  /** Unlike `instanceof`, this does not throw for a revoked proxy, with which a promise may reject. */
  static is(caught: unknown): caught is FieldError {
    return typeof caught === 'object' && caught !== null && #isFieldError in caught;
  }
}

/** Wraps a value that was caught at a position. An error that propagates from a descendant keeps its position. */
export function toFieldError(
  caught: unknown,
  position: ErrorPosition,
  path: ResponsePath | undefined,
): FieldError {
  return FieldError.is(caught) ? caught : new FieldError(caught, position.field, path);
}

/** Writes one field with its key and handles its errors. Throws a FieldError if the parent has to become null. */
export type FieldRun = (ex: Execution, source: unknown, parent: ResponsePath | undefined) => void;

/** Writes the fields of an object value. */
export type ObjectRun = (ex: Execution, source: unknown, path: ResponsePath | undefined) => void;

/**
 * Writes a value that is not a promise (CompleteValue of the specification). Throws the reason if that fails.
 * If it has to wait (for an asynchronous `resolveType`), it writes nothing and returns a continuation for a
 * Pending.
 */
export type Complete = (
  ex: Execution,
  value: unknown,
  path: ResponsePath,
  info: GraphQLResolveInfo | undefined,
) => Continuation | undefined;

/** Continues with a position that waits. */
export type Continuation = (pending: Pending) => void;

/** Writes a value of the JavaScript type that its built-in scalar represents; returns false for any other value. */
export type DirectWrite = (ex: Execution, value: unknown) => boolean;

/** A response position that can be null or fail: a field, or the items of a list. */
export interface Position extends ErrorPosition {
  readonly complete: Complete;
  /** The direct writer of a built-in scalar; undefined for other types. */
  readonly direct: DirectWrite | undefined;
}

/** A resolver as the engine calls it: `info` is missing if the function cannot read it. */
export type Resolver = (
  source: unknown,
  args: Record<string, unknown>,
  context: unknown,
  info: GraphQLResolveInfo | undefined,
) => unknown;

/** The properties of a field of one object type that are known before execution. */
export interface FieldPlan extends ErrorField {
  /** The response key: the alias, or the name. */
  readonly key: string;
  readonly definition: GraphQLField<unknown, unknown>;
  readonly type: GraphQLOutputType;
  /** `,"key":`. The brace of the object replaces the comma of its first field. */
  readonly keyText: StaticText;
  readonly resolve: Resolver | undefined;
  readonly args: (ex: Execution) => Record<string, unknown>;
  /** The resolver, or a function of the field's type, may read `info`. */
  readonly needsInfo: boolean;
  /** Notices a resolver that loads items one by one; undefined in production. */
  readonly watch: LoadWatch | undefined;
}

/** The function of `info` that graphql 17 has, and graphql 16 only here. */
interface SignalFunction {
  getAbortSignal(): AbortSignal | undefined;
}

/** The functions that graphql 17 adds to `info`. */
interface InfoFunctions extends SignalFunction {
  getAsyncHelpers(): {
    promiseAll(values: readonly unknown[]): Promise<unknown[]>;
    track(values: readonly unknown[]): void;
  };
}

/** Creates the `info` of a field, with the same properties in the same order as in graphql-js. */
export function createInfo(ex: Execution, plan: FieldPlan, path: ResponsePath): GraphQLResolveInfo {
  const info = createGraphqlInfo(ex, plan, path);
  const { caching, guards } = ex.program.settings;
  if (guards?.authOf !== undefined) Object.assign(info, { auth: guards.authOf(ex.inputs) });
  return caching === undefined ? info : withCacheControl(caching, info, ex, plan);
}

const createGraphqlInfo: typeof createInfo = V17
  ? (ex, plan, path) => {
      ex.infoFunctions ??= createInfoFunctions(ex);
      return { ...infoData(ex, plan, path), ...ex.infoFunctions };
    }
  : (ex, plan, path) => {
      ex.infoFunctions ??= { getAbortSignal: () => ex.inputs.signal };
      return infoData(ex, plan, path);
    };

/** Adds the member that resolvers have with the option `httpCache`. */
function withCacheControl(
  caching: Caching,
  info: GraphQLResolveInfo,
  ex: Execution,
  { definition }: FieldPlan,
): GraphQLResolveInfo {
  const isRoot = info.path.prev === undefined;
  return Object.assign(info, { cacheControl: caching.controlFor(ex.inputs.caching, definition, isRoot) });
}

function infoData(ex: Execution, plan: FieldPlan, path: ResponsePath): GraphQLResolveInfo {
  const { program } = ex;
  const { schema, visible } = program;
  const info: GraphQLResolveInfo & Record<keyof SignalFunction, unknown> = {
    fieldName: plan.name,
    fieldNodes: plan.nodes,
    returnType: plan.type,
    parentType: plan.parentType,
    path,
    schema: visible !== schema && isIntrospection(plan) ? visible : schema,
    fragments: program.fragments,
    rootValue: ex.inputs.rootValue,
    operation: program.operation,
    variableValues: ex.variables,
    getAbortSignal: ex.infoFunctions?.getAbortSignal,
  };
  return info;
}

const isIntrospection = ({ definition, parentType }: FieldPlan): boolean =>
  definition === graphql.SchemaMetaFieldDef ||
  definition === graphql.TypeMetaFieldDef ||
  graphql.isIntrospectionType(parentType);

/** Executions that have one abort signal for their resolvers: usually one, several with deferred parts. */
export interface AbortScope {
  readonly inputs: Pick<ExecutionInputs, 'signal'>;
  /** The resolvers are no longer needed. */
  readonly finished: boolean;
  /** Aborts the signal; undefined if no resolver has asked for it. */
  abortResolvers: ((reason?: unknown) => void) | undefined;
}

/** Called once per scope. The controller is created when a resolver first asks for the signal. */
export function createInfoFunctions(scope: AbortScope): InfoFunctions {
  let controller: AbortController | undefined;
  const helpers = {
    promiseAll(values: readonly unknown[]) {
      const all = Promise.all(values);
      all.then(undefined, () => track(values));
      return all;
    },
    track,
  };
  return {
    getAbortSignal() {
      if (controller === undefined) {
        controller = new AbortController();
        const { signal } = scope.inputs;
        const abort = (reason?: unknown): void => {
          signal?.removeEventListener('abort', onAbort);
          controller?.abort(reason);
        };
        const onAbort = (): void => abort(signal?.reason);
        if (scope.finished || signal?.aborted === true) abort(signal?.reason);
        else signal?.addEventListener('abort', onAbort);
        scope.abortResolvers = abort;
      }
      return controller.signal;
    },
    getAsyncHelpers: () => helpers,
  };
}

/** Prevents unhandled rejections of promises whose values are no longer needed. */
function track(values: readonly unknown[]): void {
  const ignore = (): void => undefined;
  for (const value of values) if (isThenable(value)) value.then(ignore, ignore);
}

/** The path of a field. */
export function fieldPath(plan: FieldPlan, parent: ResponsePath | undefined): ResponsePath {
  return { prev: parent, key: plan.key, typename: plan.parentType.name };
}

export function itemPath(list: ResponsePath, index: number): ResponsePath {
  return { prev: list, key: index, typename: undefined };
}

/** The keys of a path, from the root on. */
export function keysOf(path: ResponsePath | undefined): (string | number)[] {
  const keys: (string | number)[] = [];
  for (let at = path; at !== undefined; at = at.prev) keys.push(at.key);
  return keys.reverse();
}
