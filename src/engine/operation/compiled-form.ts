import type { DocumentNode } from 'graphql';
import { type Condition, conditionsOf, variantKey } from '../../execution/conditions.ts';
import type { MemoryAccount } from '../../execution/engine.ts';
import type { ExecutionInputs } from '../../execution/types.ts';
import { CompiledMemory, SharedFields, type SharedPlans } from '../compile/shared-plans.ts';
import type { Program } from '../run/program.ts';
import { SchemaSnapshot } from '../run/schema-functions.ts';
import type { ProgramRun } from './execute.ts';
import { type CoerceVariables, compileVariables } from './variables.ts';

const MAX_VARIANTS = 64;

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

/**
 * A compiled form that is created when it is first needed, and again after a function of the schema was
 * replaced.
 */
export class CurrentForm {
  readonly #source: FormSource;
  #form: CompiledForm | undefined;

  constructor(source: FormSource) {
    this.#source = source;
  }

  get(): CompiledForm {
    let form = this.#form;
    if (form?.snapshot.isCurrent() === true) return form;
    this.release();
    form = compileForm(this.#source);
    this.#form = form;
    return form;
  }

  release(): void {
    this.#form?.memory.release();
    this.#form = undefined;
  }
}

/** The run for the variables of a request; undefined if graphql-js has to execute it. */
export function selectRun(
  { variants, memory }: CompiledForm,
  inputs: ExecutionInputs,
): ProgramRun | undefined {
  const run = variants.select(inputs.variableValues);
  if (run === undefined && memory.isExceeded) memory.release();
  return run;
}

/** The compiled form of an operation. It is valid as long as the functions of the schema stay the same. */
export interface CompiledForm {
  readonly snapshot: SchemaSnapshot;
  readonly memory: CompiledMemory;
  readonly coerceVariables: CoerceVariables;
  readonly variants: Variants;
}

function compileForm(source: FormSource): CompiledForm {
  const { schema, operation, settings } = source.program;
  const snapshot = new SchemaSnapshot();
  const memory = new CompiledMemory(source.account);
  return {
    snapshot,
    memory,
    coerceVariables: compileVariables(schema, operation, settings, snapshot),
    variants: new Variants(source, { leafFields: new SharedFields(), memory, snapshot }),
  };
}

/**
 * The compiled variants of one operation: one for each combination of the variables in its conditions.
 */
class Variants {
  readonly #source: FormSource;
  readonly #conditions: readonly Condition[];
  readonly #shared: SharedPlans;
  readonly #runs = new Map<string, ProgramRun>();
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
    let run = this.#runs.get(key);
    if (run === undefined && this.#runs.size < MAX_VARIANTS) {
      run = this.#compile();
      this.#runs.set(key, run);
    }
    return run;
  }

  #compile(): ProgramRun {
    return this.#source.compile(this.#source.program, this.#shared);
  }
}
