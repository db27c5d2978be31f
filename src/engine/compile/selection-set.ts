import type { FieldNode, GraphQLObjectType, ResponsePath } from 'graphql';
import { V17 } from '../../execution/graphql-version.ts';
import type { Compiler } from '../complete/compiler.ts';
import { writeByte } from '../json/sink.ts';
import type { Execution } from '../run/execution.ts';
import type { FieldError } from '../run/field-error.ts';
import { isWaiting } from '../run/pending.ts';
import type { FieldRun, ObjectRun } from '../run/plan.ts';
import type { Program } from '../run/program.ts';
import { collectRootFields, collectSubfields } from './collect-fields.ts';
import { compileField } from './field.ts';

const OPEN = 123;
const CLOSE = 125;

/** Compiles the selection sets of one program, for one combination of its `@skip` and `@include` variables. */
export function createCompiler(program: Program): Compiler {
  const compiler: Compiler = {
    program,
    compileSelectionSet: (type, nodes) => compileSelectionSet(compiler, type, nodes),
  };
  return compiler;
}

/** Compiles the fields of the operation. */
export function compileRootFields(compiler: Compiler, ex: Execution): FieldRun[] {
  const { program } = compiler;
  const grouped = collectRootFields(program, program.rootType, ex.variables);
  return compileFields(compiler, program.rootType, grouped);
}

/**
 * The fields are compiled when the first value arrives, so a document costs only what its execution reaches, however
 * often it spreads its fragments.
 */
function compileSelectionSet(
  compiler: Compiler,
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
  compiler: Compiler,
  type: GraphQLObjectType,
  grouped: ReadonlyMap<string, readonly FieldNode[]>,
): FieldRun[] {
  const fields: FieldRun[] = [];
  for (const [key, nodes] of grouped) {
    const field = compileField(compiler, type, key, nodes);
    if (field !== undefined) fields.push(field);
  }
  return fields;
}

/** Writes an object. Each key has a comma before it; the first comma is replaced by the brace. */
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

/** graphql 16: if a field throws while others are pending, the object waits for them before it fails. */
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
    ex.pendingError = error as FieldError;
  }
}
