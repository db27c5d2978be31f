import type { FieldNode, GraphQLObjectType, ResponsePath } from 'graphql';
import { V17 } from '../../execution/graphql-version.ts';
import type { Compiler } from '../complete/compiler.ts';
import { writeByte } from '../json/sink.ts';
import type { Execution } from '../run/execution.ts';
import type { FieldError } from '../run/field-error.ts';
import { isWaiting } from '../run/pending.ts';
import type { FieldRun, ObjectRun } from '../run/plan.ts';
import type { Program } from '../run/program.ts';
import type { SchemaSnapshot } from '../run/schema-snapshot.ts';
import { ignoreRejections } from '../run/unused-values.ts';
import { collectRootFields, collectSubfields } from './collect-fields.ts';
import type { CompiledMemory } from './compiled-memory.ts';
import { compileField } from './field.ts';
import { SharedFields } from './shared-fields.ts';

const OPEN = 123;
const CLOSE = 125;

/** The state that the compiled variants of one program share. */
export interface SharedPlans {
  /** Fields without a selection set, which are the same in every variant. */
  readonly leafFields: SharedFields;
  readonly memory: CompiledMemory;
  readonly snapshot: SchemaSnapshot;
}

interface SelectionCompiler extends Compiler {
  readonly shared: SharedPlans;
  /** Fields with a selection set, which may depend on `@skip` and `@include`. */
  readonly compositeFields: SharedFields;
}

/** Creates the compiler of one variant: one combination of the `@skip` and `@include` variables of a program. */
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

/** Compiles the fields of the operation. */
export function compileRootFields(compiler: SelectionCompiler, ex: Execution): FieldRun[] {
  const { program } = compiler;
  const grouped = collectRootFields(program, program.rootType, ex.variables);
  return compileFields(compiler, program.rootType, grouped);
}

/**
 * The fields are compiled when the first value arrives, so fields that no execution reaches cost nothing, however
 * often the document spreads its fragments.
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
    const field = sharedField(compiler, type, key, nodes);
    if (field !== undefined) fields.push(field);
  }
  compiler.shared.memory.addSelectionSet(fields.length);
  return fields;
}

function sharedField(
  compiler: SelectionCompiler,
  type: GraphQLObjectType,
  key: string,
  nodes: readonly FieldNode[],
): FieldRun | undefined {
  const { leafFields, memory } = compiler.shared;
  const known = nodes[0]?.selectionSet === undefined ? leafFields : compiler.compositeFields;
  let field = known.get(type, nodes);
  if (field === undefined) {
    field = compileField(compiler, type, key, nodes);
    if (field === undefined) return undefined;
    known.set(type, nodes, field);
    memory.addField();
  }
  return field;
}

/** Writes an object. Each key begins with a comma; the brace replaces the first comma. */
export const runFields: (
  ex: Execution,
  fields: readonly FieldRun[],
  source: unknown,
  path: ResponsePath | undefined,
) => void = V17 ? writeFields : writeFieldsOrWait;

function writeFields(
  ex: Execution,
  fields: readonly FieldRun[],
  source: unknown,
  path: ResponsePath | undefined,
): void {
  const start = ex.pos;
  const count = fields.length;
  for (let i = 0; i < count; i++) (fields[i] as FieldRun)(ex, source, path);
  if (ex.pos === start) writeByte(ex, OPEN);
  else ex.buf[start] = OPEN;
  writeByte(ex, CLOSE);
}

/** graphql 16: if a field throws while other fields are pending, the object waits for them before it fails. */
function writeFieldsOrWait(
  ex: Execution,
  fields: readonly FieldRun[],
  source: unknown,
  path: ResponsePath | undefined,
): void {
  const mark = ex.pending.length;
  try {
    writeFields(ex, fields, source, path);
  } catch (error) {
    if (!isWaiting(ex, mark)) throw error;
    ignoreRejections(ex, source);
    ex.pendingError = error as FieldError;
  }
}
