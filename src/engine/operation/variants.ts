import { type DocumentNode, Kind, visit } from 'graphql';
import type { Program } from '../run/program.ts';
import { compileRoot, type ProgramRun } from './root.ts';

const MAX_VARIANTS = 64;

/** A variable of `@skip` or `@include`, with its default value. */
interface Condition {
  readonly name: string;
  readonly fallback: boolean | undefined;
}

/**
 * Compiles one variant for each combination of the variables in `@skip` and `@include`. Returns undefined where graphql-js
 * has to execute: for a value that is not a boolean, and after 64 combinations. Reads the variables as received, so that
 * graphql-js is the only one to coerce those that it executes with.
 */
export function compileVariants(
  program: Program,
  document: DocumentNode,
): (variables: Record<string, unknown> | undefined) => ProgramRun | undefined {
  const conditions = conditionsOf(program, document);
  if (conditions.length === 0) {
    const only = compileRoot(program);
    return () => only;
  }
  const variants = new Map<string, ProgramRun>();
  return (variables = {}) => {
    let key = '';
    for (const { name, fallback } of conditions) {
      const value = Object.hasOwn(variables, name) ? variables[name] : fallback;
      if (typeof value !== 'boolean') return undefined;
      key += value ? '1' : '0';
    }
    let run = variants.get(key);
    if (run === undefined && variants.size < MAX_VARIANTS) {
      run = compileRoot(program);
      variants.set(key, run);
    }
    return run;
  };
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
