import { type DocumentNode, visit } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { CONDITIONS, type Condition, conditionsOf, KeptVariants, variantKey } from '../execution/document.ts';
import { executeIncrementally, graphqlJs, outcomeFromResult } from '../execution/graphql-js.ts';
import { V17 } from '../execution/graphql-version.ts';
import { warnIfExecuteIsWrapped } from '../execution/observed.ts';
import {
  coercionChannel,
  executeChannel,
  isTraced,
  operationContext,
  requestContext,
  resolveChannel,
  selectionChannel,
  type TraceContext,
  type TracingChannel,
  trace,
} from '../execution/tracing.ts';
import {
  type Engine,
  type EngineSettings,
  type ExecuteOperation,
  type ExecutionInputs,
  type ExecutionOutcome,
  type Guards,
  type IncrementalEngine,
  isThenable,
  type MemoryAccount,
  type ValidatedOperation,
} from '../execution/types.ts';
import { CompiledMemory, createProgram, KnownResolvers, SharedFields, type SharedPlans } from './compile.ts';
import { compileProgram, type ProgramRun } from './execute.ts';
import type { Program } from './execution.ts';
import { compileIncrementally } from './incremental.ts';
import {
  type CoercedVariables,
  type CoerceVariables,
  compileVariables,
  toCoerced,
  type VariableErrors,
  variableValues,
} from './input.ts';

/**
 * The compiled engine. It turns an operation into closures that resolve its fields and write JSON bytes.
 * Responses equal those of graphql-js, which executes the operations that the engine does not support (see
 * `needsGraphqlJs`).
 */
export const compiled: Engine = (operation, settings, account) => {
  const reference = graphqlJs(operation, settings);
  if (needsGraphqlJs(operation)) return reference;
  warnIfExecuteIsWrapped();
  const form = new CurrentForm({
    program: createProgram(operation, settings),
    document: operation.document,
    account,
    conditions: CONDITIONS,
    compile: compileProgram,
  });
  const context = { reference, settings };

  return (inputs) => {
    if (!V17 || !isExecutionTraced()) return runForm(form.get(), inputs, context);
    const run = isTraced(resolveChannel) ? undefined : selectRun(form.get(), inputs);
    return run === undefined ? reference(inputs) : executeTraced({ operation, settings, run }, inputs);
  };
};

/** The parts of an operation that its executions share. */
interface FormContext {
  readonly reference: ExecuteOperation;
  readonly settings: EngineSettings;
}

/** Executes the variant for the variables of a request; graphql-js does where there is none. */
function runForm(
  form: CompiledForm,
  inputs: ExecutionInputs,
  { reference, settings }: FormContext,
): MaybePromise<ExecutionOutcome> {
  const run = selectRun(form, inputs);
  if (run === undefined) return reference(inputs);
  const coerced = form.coerceVariables(inputs.variableValues);
  if (coerced.kind === 'errors') return outcomeFromResult({ errors: coerced.errors }, settings, inputs);
  return run(inputs, coerced.variables, coerced.values);
}

/**
 * Like `compiled`, for operations with `@defer` whose parts are delivered in several payloads. Operations with
 * `@stream` and traced executions are given to graphql-js.
 */
export const compiledIncrementally: IncrementalEngine = (operation, settings, format, account) => {
  const reference = executeIncrementally(operation, settings, format);
  if (needsGraphqlJsIncrementally(operation)) return reference;
  warnIfExecuteIsWrapped();
  const form = new CurrentForm({
    program: createProgram(operation, settings),
    document: operation.document,
    account,
    conditions: INCREMENTAL_CONDITIONS,
    compile: (program, shared) => compileIncrementally(program, shared, format),
  });
  const context = { reference, settings };
  return (inputs) => {
    if (isExecutionTraced()) return reference(inputs);
    return runForm(form.get(), inputs, context);
  };
};

const INCREMENTAL_CONDITIONS: readonly string[] = [...CONDITIONS, 'defer'];

/**
 * Keeps the compiled form of an operation from its second execution on, so that documents that are used once
 * retain no compiled form.
 */
function onSecondUse(
  create: (account?: MemoryAccount) => ExecuteOperation,
  account: MemoryAccount | undefined,
): ExecuteOperation {
  let execute: ExecuteOperation = (inputs) => {
    execute = (later) => {
      execute = create(account);
      return execute(later);
    };
    return create()(inputs);
  };
  return (inputs) => execute(inputs);
}

/** Like `compiled`, but retains nothing for a document that is used once. */
export const compiledOnSecondUse: Engine = (operation, settings, account) =>
  onSecondUse((charged) => compiled(operation, settings, charged), account);

/** Like `compiledIncrementally`, but retains nothing for a document that is used once. */
export const compiledIncrementallyOnSecondUse: IncrementalEngine = (operation, settings, format, account) =>
  onSecondUse((charged) => compiledIncrementally(operation, settings, format, charged), account);

const NO_PROPAGATION_DIRECTIVE = 'experimental_disableErrorPropagation';

/**
 * Whether graphql-js has to execute an operation, because it uses a feature that the engine does not
 * implement. Without incremental delivery, `@defer` and `@stream` have no effect.
 */
function needsGraphqlJs({ schema, document, operation }: ValidatedOperation): boolean {
  if (schema.getRootType(operation.operation) === undefined) return true;
  if (operation.directives?.some(({ name }) => name.value === NO_PROPAGATION_DIRECTIVE) === true) return true;
  return document.definitions.some((node) => node.kind === 'FragmentDefinition' && hasVariables(node));
}

/** Whether graphql-js has to execute an operation in several payloads. */
function needsGraphqlJsIncrementally(operation: ValidatedOperation): boolean {
  if (needsGraphqlJs(operation)) return true;
  let found = false;
  visit(operation.document, {
    Directive: ({ name, arguments: args = [] }) => {
      if (name.value === 'stream') found = true;
      // Validation requires a static label, but its rules may be replaced.
      if (name.value === 'defer' && args.some(isVariableLabel)) found = true;
    },
  });
  return found;
}

interface Argument {
  readonly name: { readonly value: string };
  readonly value: { readonly kind: string };
}

const isVariableLabel = ({ name, value }: Argument): boolean =>
  name.value === 'label' && value.kind === 'Variable';

/** Whether a fragment has arguments (graphql 17, experimental). */
function hasVariables(fragment: { variableDefinitions?: readonly unknown[] | undefined }): boolean {
  return fragment.variableDefinitions !== undefined && fragment.variableDefinitions.length > 0;
}

/** The inputs of the compiled form of an operation. */
interface FormSource {
  readonly program: Program;
  readonly document: DocumentNode;
  readonly account: MemoryAccount | undefined;
  /** The directives whose variables select a variant. */
  readonly conditions: readonly string[];
  /** Compiles one variant. */
  compile(program: Program, shared: SharedPlans): ProgramRun;
}

/** A compiled form that is created when it is first needed, and again after a resolver was replaced. */
class CurrentForm {
  readonly #source: FormSource;
  #form: CompiledForm | undefined;

  constructor(source: FormSource) {
    this.#source = source;
  }

  get(): CompiledForm {
    let form = this.#form;
    if (form?.resolvers.areCurrent() === true) return form;
    form?.memory.release();
    form = compileForm(this.#source);
    this.#form = form;
    return form;
  }
}

/** The run for the variables of a request; undefined if graphql-js has to execute it. */
function selectRun(form: CompiledForm, inputs: ExecutionInputs): ProgramRun | undefined {
  const { memory, restricted } = form;
  const variants = restricted?.appliesTo(inputs) === true ? restricted.variants : form.variants;
  const run = variants.select(inputs.variableValues);
  if (run === undefined && memory.isExceeded) memory.release();
  return run;
}

/** The compiled form of an operation. It is valid as long as the resolvers of its fields stay the same. */
interface CompiledForm {
  readonly resolvers: KnownResolvers;
  readonly memory: CompiledMemory;
  readonly coerceVariables: CoerceVariables;
  readonly variants: Variants;
  /** For executions in which something may be refused; undefined if nothing is checked. */
  readonly restricted: { readonly variants: Variants; readonly appliesTo: Guards['appliesTo'] } | undefined;
}

function compileForm(source: FormSource): CompiledForm {
  const { schema, operation, settings } = source.program;
  const resolvers = new KnownResolvers();
  const memory = new CompiledMemory(source.account);
  const variantsOf = (program: Program): Variants =>
    new Variants({ ...source, program }, { leafFields: new SharedFields(), memory, resolvers });
  return {
    resolvers,
    memory,
    coerceVariables: compileVariables(schema, operation, settings),
    variants: variantsOf(source.program),
    restricted: settings.guards && {
      variants: variantsOf({ ...source.program, isRestricted: true }),
      appliesTo: settings.guards.appliesTo,
    },
  };
}

/**
 * The compiled variants of one operation: one for each combination of the variables in its conditions.
 */
class Variants {
  readonly #source: FormSource;
  readonly #conditions: readonly Condition[];
  readonly #shared: SharedPlans;
  readonly #runs = new KeptVariants(() => this.#compile());
  /** The run of an operation without conditions. */
  #only: ProgramRun | undefined;

  constructor(source: FormSource, shared: SharedPlans) {
    this.#source = source;
    this.#conditions = conditionsOf(source.program.operation, source.document, source.conditions);
    this.#shared = shared;
  }

  /**
   * Returns undefined where graphql-js has to execute: for a value that is not a boolean, after 64
   * combinations, and once the compiled form needs more memory than its account allows. Reads the variables
   * as received, so that no variable is coerced twice if graphql-js executes.
   */
  select(variables: Record<string, unknown> = {}): ProgramRun | undefined {
    if (this.#shared.memory.isExceeded) {
      this.#runs.clear();
      this.#only = undefined;
      return undefined;
    }
    if (this.#conditions.length === 0) {
      this.#only ??= this.#compile();
      return this.#only;
    }
    const key = variantKey(this.#conditions, variables);
    if (key === undefined) return undefined;
    return this.#runs.get(key);
  }

  #compile(): ProgramRun {
    return this.#source.compile(this.#source.program, this.#shared);
  }
}

/** Whether a channel that executions publish on has subscribers. */
function isExecutionTraced(): boolean {
  return (
    isTraced(executeChannel) ||
    isTraced(resolveChannel) ||
    isTraced(coercionChannel) ||
    isTraced(selectionChannel)
  );
}

/** The compiled form of an operation for one request. */
interface TracedOperation {
  readonly operation: ValidatedOperation;
  readonly settings: EngineSettings;
  readonly run: ProgramRun;
}

/** Executes an operation and publishes the events that graphql-js publishes. */
function executeTraced(traced: TracedOperation, inputs: ExecutionInputs): MaybePromise<ExecutionOutcome> {
  const { operation, settings } = traced;
  // graphql-js coerces the variables of a subscription once, and its events are not executions.
  const isEvent = operation.operation.operation === 'subscription';
  const execute = (): MaybePromise<Settled> => executeSteps(traced, inputs, isEvent);
  const settled = isEvent ? execute() : traceStep(executeChannel, requestContext(operation, inputs), execute);
  const toOutcome = (result: Settled): ExecutionOutcome =>
    result.kind === 'errors' ? outcomeFromResult({ errors: result.errors }, settings, inputs) : result;
  return isThenable(settled) ? settled.then(toOutcome) : toOutcome(settled);
}

/** The outcome of an execution, or the errors of variables, which are formatted after the events. */
type Settled = ExecutionOutcome | VariableErrors;

function executeSteps(
  { operation, settings, run }: TracedOperation,
  inputs: ExecutionInputs,
  isEvent: boolean,
): MaybePromise<Settled> {
  const coerced = coerce(operation, settings, inputs, isEvent);
  if (coerced.kind === 'errors') return coerced;
  return traceStep(selectionChannel, operationContext(operation, inputs), () => {
    const outcome = run(inputs, coerced.variables, coerced.values);
    return isThenable(outcome) ? outcome.then(retained) : retained(outcome);
  });
}

function coerce(
  operation: ValidatedOperation,
  settings: EngineSettings,
  inputs: ExecutionInputs,
  isEvent: boolean,
): CoercedVariables | VariableErrors {
  const read = (): object =>
    variableValues(operation.schema, operation.operation, settings, inputs.variableValues);
  if (isEvent || !isTraced(coercionChannel)) return toCoerced(read());
  return toCoerced(trace(coercionChannel, operationContext(operation, inputs), read));
}

/** Subscribers may read the response later, so its buffer must not be reused. */
function retained(outcome: ExecutionOutcome): ExecutionOutcome {
  return outcome.release === undefined ? outcome : { ...outcome, release: undefined };
}

function traceStep(
  channel: TracingChannel,
  context: TraceContext,
  step: () => MaybePromise<Settled>,
): MaybePromise<Settled> {
  return isTraced(channel) ? trace(channel, context, step, setResult) : step();
}

/** Results by outcome, since graphql-js publishes one object on both channels. */
const results = new WeakMap<Settled, object>();

/**
 * Sets the result that graphql-js publishes. The data is parsed from the response when a subscriber reads it.
 */
function setResult(context: TraceContext, settled: Settled): void {
  Object.defineProperty(context, 'result', {
    configurable: true,
    enumerable: true,
    get: () => resultOf(settled),
    set: (value: object) => results.set(settled, value),
  });
}

function toResult(settled: Settled): object {
  if (settled.kind === 'errors') return { errors: settled.errors };
  const { data } = JSON.parse(settled.body.toString());
  return settled.kind === 'data' ? { data } : { errors: settled.errors, data };
}

function resultOf(settled: Settled): object {
  let result = results.get(settled);
  if (result === undefined) {
    result = toResult(settled);
    results.set(settled, result);
  }
  return result;
}
