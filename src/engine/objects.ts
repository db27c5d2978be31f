import type { FieldNode, GraphQLObjectType } from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import { collectFields, collectSubfields } from './collect.ts';
import type { Fault } from './errors.ts';
import type { Execution } from './execution.ts';
import { compileField } from './fields.ts';
import type { FieldRun, ObjectRun, ResponsePath } from './plan.ts';
import type { Program } from './program.ts';
import { hasPending } from './slots.ts';
import { writeByte } from './writer.ts';

const OPEN = 123;
const CLOSE = 125;

/** The fields of the operation's root. */
export function compileRoot(program: Program, type: GraphQLObjectType, ex: Execution): FieldRun[] {
  return compileFields(program, type, collectFields(program, type, ex.variables));
}

/**
 * The fields below some field nodes, for one object type. They are compiled when the first value arrives: a document
 * costs what its execution reaches, however often it spreads its fragments.
 */
export function compileObject(
  program: Program,
  type: GraphQLObjectType,
  nodes: readonly FieldNode[],
): ObjectRun {
  let fields: FieldRun[] | undefined;
  return (ex, source, path) => {
    fields ??= compileFields(program, type, collectSubfields(program, type, nodes, ex.variables));
    runFields(ex, fields, source, path);
  };
}

function compileFields(
  program: Program,
  type: GraphQLObjectType,
  grouped: ReadonlyMap<string, readonly FieldNode[]>,
): FieldRun[] {
  const fields: FieldRun[] = [];
  for (const [key, nodes] of grouped) {
    const field = compileField(program, type, key, nodes);
    if (field !== undefined) fields.push(field);
  }
  return fields;
}

/** Writes an object. Each key brings the comma in front of it; the first comma becomes the brace. */
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

/** graphql 16: when a field throws while others are pending, the object waits for those before it fails. */
function writeFieldsOrWait(
  ex: Execution,
  fields: readonly FieldRun[],
  source: unknown,
  path: ResponsePath | undefined,
): void {
  const mark = ex.parts.length;
  try {
    writeFields(ex, fields, source, path);
  } catch (fault) {
    if (!hasPending(ex, mark)) throw fault;
    ex.doom = fault as Fault;
  }
}
