import type { DocumentNode } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { type Condition, conditionsOf, variantKey } from '../execution/conditions.ts';
import type { Engine, MemoryAccount } from '../execution/engine.ts';
import { guardedGraphqlJs, outcomeFromResult } from '../execution/graphql-js.ts';
import { V17 } from '../execution/graphql-version.ts';
import { warnIfExecuteIsWrapped } from '../execution/observed/replaced-execute.ts';
import { isTraced, resolveChannel } from '../execution/tracing.ts';
import type { ExecutionInputs, ExecutionOutcome } from '../execution/types.ts';
import { CompiledMemory, SharedFields, type SharedPlans } from './compile/shared-plans.ts';
import { needsGraphqlJs } from './operation/delegation.ts';
import { compileRoot, type ProgramRun } from './operation/execute.ts';
import { executeTraced, isExecutionTraced } from './operation/traced.ts';
import { type CoerceVariables, compileVariables } from './operation/variables.ts';
import { createProgram, type Program } from './run/program.ts';
import { SchemaSnapshot } from './run/schema-functions.ts';

const MAX_VARIANTS = 64;

/**
 * The compiled engine. It turns an operation into closures that resolve its fields and write JSON bytes.
 * Responses equal those of graphql-js, which executes the operations that the engine does not support (see
 * operation/delegation.ts).
 */
export const compiled: Engine = (operation, settings, account) => {
  const reference = guardedGraphqlJs(operation, settings);
  if (needsGraphqlJs(operation.schema, operation.document, operation.operation)) return reference;
  warnIfExecuteIsWrapped();
  const program = createProgram(operation, settings);
  const plain = new CurrentForm(() => compileForm(program, operation.document, account));
  const traced = new CurrentForm(() =>
    compileForm({ ...program, tracesResolvers: true }, operation.document, account),
  );

  function runTraced(inputs: ExecutionInputs, form: CompiledForm): MaybePromise<ExecutionOutcome> {
    const run = selectRun(form, inputs);
    return run === undefined ? reference(inputs) : executeTraced({ operation, settings, run }, inputs);
  }

  return (inputs) => {
    if (V17) {
      if (isTraced(resolveChannel)) return runTraced(inputs, traced.get());
      traced.release();
      if (isExecutionTraced()) return runTraced(inputs, plain.get());
    }
    const form = plain.get();
    const run = selectRun(form, inputs);
    if (run === undefined) return reference(inputs);
    const coerced = form.coerceVariables(inputs.variableValues);
    if ('errors' in coerced) return outcomeFromResult(coerced, settings, inputs);
    return run(inputs, coerced.variables, coerced.values);
  };
};

/**
 * A compiled form that is created when it is first needed, and again after a function of the schema was
 * replaced.
 */
class CurrentForm {
  readonly #compile: () => CompiledForm;
  #form: CompiledForm | undefined;

  constructor(compile: () => CompiledForm) {
    this.#compile = compile;
  }

  get(): CompiledForm {
    let form = this.#form;
    if (form?.snapshot.isCurrent() === true) return form;
    this.release();
    form = this.#compile();
    this.#form = form;
    return form;
  }

  release(): void {
    this.#form?.memory.release();
    this.#form = undefined;
  }
}

/** The run for the variables of a request; undefined if graphql-js has to execute it. */
function selectRun({ variants, memory }: CompiledForm, inputs: ExecutionInputs): ProgramRun | undefined {
  const run = variants.select(inputs.variableValues);
  if (run === undefined && memory.isExceeded) memory.release();
  return run;
}

/** The compiled form of an operation. It is valid as long as the functions of the schema stay the same. */
interface CompiledForm {
  readonly snapshot: SchemaSnapshot;
  readonly memory: CompiledMemory;
  readonly coerceVariables: CoerceVariables;
  readonly variants: Variants;
}

function compileForm(
  program: Program,
  document: DocumentNode,
  account: MemoryAccount | undefined,
): CompiledForm {
  const { schema, operation, settings } = program;
  const snapshot = new SchemaSnapshot();
  const memory = new CompiledMemory(account);
  return {
    snapshot,
    memory,
    coerceVariables: compileVariables(schema, operation, settings, snapshot),
    variants: new Variants(program, document, { leafFields: new SharedFields(), memory, snapshot }),
  };
}

/**
 * The compiled variants of one operation: one for each combination of the variables in `@skip` and
 * `@include`.
 */
class Variants {
  readonly #program: Program;
  readonly #conditions: readonly Condition[];
  readonly #shared: SharedPlans;
  readonly #runs = new Map<string, ProgramRun>();
  /** The run of an operation without conditions. */
  #only: ProgramRun | undefined;

  constructor(program: Program, document: DocumentNode, shared: SharedPlans) {
    this.#program = program;
    this.#conditions = conditionsOf(program.operation, document);
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
      this.#only ??= compileRoot(this.#program, this.#shared);
      return this.#only;
    }
    const key = variantKey(this.#conditions, variables);
    if (key === undefined) return undefined;
    let run = this.#runs.get(key);
    if (run === undefined && this.#runs.size < MAX_VARIANTS) {
      run = compileRoot(this.#program, this.#shared);
      this.#runs.set(key, run);
    }
    return run;
  }
}
