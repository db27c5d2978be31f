import type { FieldNode, GraphQLObjectType } from 'graphql';
import type { Execution } from '../run/execution.ts';
import type { Compiler, FieldRun, ObjectRun } from '../run/plan.ts';
import type { Program } from '../run/program.ts';
import { collectRootFields, collectSubfields } from './collect-fields.ts';
import { compileField } from './field.ts';
import { runFields } from './run-fields.ts';
import { SharedFields, type SharedPlans } from './shared-plans.ts';

/** A compiler with the fields that it has compiled. */
interface SelectionCompiler extends Compiler {
  readonly shared: SharedPlans;
  /** Fields with a selection set, which may depend on `@skip` and `@include`. */
  readonly compositeFields: SharedFields;
}

/**
 * Creates the compiler of one variant: one combination of the `@skip` and `@include` variables of a program.
 */
export function createCompiler(program: Program, shared: SharedPlans): SelectionCompiler {
  const compiler: SelectionCompiler = {
    program,
    snapshot: shared.snapshot,
    shared,
    compositeFields: new SharedFields(),
    compileSelectionSet: (type, nodes) => compileSelectionSet(compiler, type, nodes),
  };
  return compiler;
}

/** The fields of an operation. */
export interface RootFields {
  readonly fields: readonly FieldRun[];
  /** Called when all fields were started; writes nothing. */
  readonly after: FieldRun | undefined;
}

/** Compiles the fields of the operation. */
export function compileRootFields(compiler: SelectionCompiler, ex: Execution): RootFields {
  const { program } = compiler;
  const grouped = collectRootFields(program, program.rootType, ex.variables);
  return { fields: compileFields(compiler, program.rootType, grouped), after: undefined };
}

/**
 * The fields are compiled when the first value arrives, so fields that no execution reaches cost nothing,
 * however often the document spreads its fragments.
 */
function compileSelectionSet(
  compiler: SelectionCompiler,
  type: GraphQLObjectType,
  nodes: readonly FieldNode[],
): ObjectRun {
  let fields: FieldRun[] | undefined;
  return (ex, source, path) => {
    fields ??= compileFields(compiler, type, collectSubfields(compiler.program, type, nodes, ex.variables));
    runFields(ex, fields, source, path);
  };
}

function compileFields(
  compiler: SelectionCompiler,
  type: GraphQLObjectType,
  grouped: ReadonlyMap<string, readonly FieldNode[]>,
): FieldRun[] {
  const fields: FieldRun[] = [];
  for (const [key, nodes] of grouped) {
    const field = sharedField(compiler, type, { key, nodes, identity: nodes });
    if (field !== undefined) fields.push(field);
  }
  compiler.shared.memory.addSelectionSet(fields.length);
  return fields;
}

/** A field under one response key. Fields with the same `identity` have the same compiled form. */
interface FieldIdentity {
  readonly key: string;
  readonly nodes: readonly FieldNode[];
  readonly identity: readonly object[];
}

/** Returns the compiled form of a field; undefined if the type has no such field. */
export function sharedField(
  compiler: SelectionCompiler,
  type: GraphQLObjectType,
  { key, nodes, identity }: FieldIdentity,
): FieldRun | undefined {
  const { leafFields, memory } = compiler.shared;
  const isLeaf = nodes[0]?.selectionSet === undefined;
  const known = isLeaf ? leafFields : compiler.compositeFields;
  const parts = isLeaf ? nodes : identity;
  let field = known.get(type, parts);
  if (field === undefined) {
    field = compileField(compiler, type, key, nodes);
    if (field === undefined) return undefined;
    known.set(type, parts, field);
    memory.addField();
  }
  return field;
}
