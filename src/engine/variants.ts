import { type DocumentNode, Kind, visit } from 'graphql';
import type { Program, ProgramRun } from './program.ts';
import { compileRun } from './run.ts';

const MAX_VARIANTS = 64;

/** A variable that decides what a document selects, and its value for those who do not send it. */
interface Condition {
  readonly name: string;
  readonly fallback: boolean | undefined;
}

/**
 * One compiled run for each combination of the variables in @skip and @include. Undefined where graphql-js has to
 * answer: for what is no boolean, and for more combinations than are worth keeping. Looks at the variables as they were
 * sent, so that those that graphql-js gets are coerced by it alone.
 */
export function compileVariants(
  program: Program,
  document: DocumentNode,
): (inputs: Record<string, unknown> | undefined) => ProgramRun | undefined {
  const conditions = conditionsOf(program, document);
  if (conditions.length === 0) {
    const only = compileRun(program);
    return () => only;
  }
  const variants = new Map<string, ProgramRun>();
  return (inputs = {}) => {
    let key = '';
    for (const { name, fallback } of conditions) {
      const value = Object.hasOwn(inputs, name) ? inputs[name] : fallback;
      if (typeof value !== 'boolean') return undefined;
      key += value ? '1' : '0';
    }
    let run = variants.get(key);
    if (run === undefined && variants.size < MAX_VARIANTS) {
      run = compileRun(program);
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
  // Others belong to other operations of the document.
  const own = (operation.variableDefinitions ?? []).filter(({ variable }) => names.has(variable.name.value));
  return own.map(({ variable, defaultValue }) => ({
    name: variable.name.value,
    fallback: defaultValue?.kind === Kind.BOOLEAN ? defaultValue.value : undefined,
  }));
}
