import { type DocumentNode, Kind, visit } from 'graphql';
import type { SharedPlans } from '../compile/selection-set.ts';
import type { Program } from '../run/program.ts';
import { compileRoot, type ProgramRun } from './root.ts';

const MAX_VARIANTS = 64;

/** A variable of `@skip` or `@include`, with its default value. */
interface Condition {
  readonly name: string;
  readonly fallback: boolean | undefined;
}

/** The compiled variants of one operation: one for each combination of the variables in `@skip` and `@include`. */
export class Variants {
  readonly #program: Program;
  readonly #conditions: readonly Condition[];
  readonly #shared: SharedPlans;
  readonly #runs = new Map<string, ProgramRun>();
  /** The run of an operation without conditions. */
  #only: ProgramRun | undefined;

  constructor(program: Program, document: DocumentNode, shared: SharedPlans) {
    this.#program = program;
    this.#conditions = conditionsOf(program, document);
    this.#shared = shared;
  }

  /**
   * Returns undefined where graphql-js has to execute: for a value that is not a boolean, after 64 combinations, and once
   * the compiled form needs more memory than its account allows. Reads the variables as received, so that no variable
   * is coerced twice if graphql-js executes.
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

/** The values of the conditions as a string of digits; undefined if one is not a boolean. */
function variantKey(
  conditions: readonly Condition[],
  variables: Record<string, unknown>,
): string | undefined {
  let key = '';
  for (const { name, fallback } of conditions) {
    const value = Object.hasOwn(variables, name) ? variables[name] : fallback;
    if (typeof value !== 'boolean') return undefined;
    key += value ? '1' : '0';
  }
  return key;
}

function conditionsOf({ operation }: Program, document: DocumentNode): Condition[] {
  const names = new Set<string>();
  visit(document, {
    Directive: (node) => {
      if (node.name.value !== 'skip' && node.name.value !== 'include') return;
      for (const { value } of node.arguments ?? [])
        if (value.kind === Kind.VARIABLE) names.add(value.name.value);
    },
  });
  // The document may contain other operations with other variables.
  const used = (operation.variableDefinitions ?? []).filter(({ variable }) => names.has(variable.name.value));
  return used.map(({ variable, defaultValue }) => ({
    name: variable.name.value,
    fallback: defaultValue?.kind === Kind.BOOLEAN ? defaultValue.value : undefined,
  }));
}
