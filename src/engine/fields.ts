import type { FieldNode, ResponsePath } from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import { completeValue, handleSyncError } from './complete.ts';
import {
  createInfo,
  type DirectWrite,
  type Execution,
  type FieldError,
  type FieldPlan,
  type FieldRun,
  fieldPath,
  type Position,
} from './execution.ts';
import { emptyArguments } from './input.ts';
import { NULL, writeByte, writeStatic, writeString } from './json.ts';
import { writeIfString } from './leaf.ts';
import { ignoreRejections, isWaiting } from './promises.ts';

const OPEN = 123;
const CLOSE = 125;

type WriteFields = (
  ex: Execution,
  fields: readonly FieldRun[],
  source: unknown,
  path: ResponsePath | undefined,
) => void;

const writeFields: WriteFields = (ex, fields, source, path) => {
  const start = ex.pos;
  const count = fields.length;
  for (let i = 0; i < count; i++) (fields[i] as FieldRun)(ex, source, path);
  if (ex.pos === start) writeByte(ex, OPEN);
  else ex.buf[start] = OPEN;
  writeByte(ex, CLOSE);
};

/** graphql 16: if a field throws while other fields are pending, the object waits for them before it fails. */
const writeFieldsOrWait: WriteFields = (ex, fields, source, path) => {
  const mark = ex.pending.length;
  try {
    writeFields(ex, fields, source, path);
  } catch (error) {
    if (!isWaiting(ex, mark)) throw error;
    ignoreRejections(ex, source);
    ex.pendingError = error as FieldError;
  }
};

/** Writes an object. Each key begins with a comma; the brace replaces the first comma. */
export const runFields: WriteFields = V17 ? writeFields : writeFieldsOrWait;

/** Resolves the value of a field and completes it. */
type WriteValue = (ex: Execution, source: unknown, path: ResponsePath) => void;

/** Writes the key of a field, then its value; handles the errors of both. */
function fieldRun(plan: FieldPlan, position: Position, writeValue: WriteValue): FieldRun {
  const { keyText } = plan;
  return (ex, source, parent) => {
    const mark = ex.pending.length;
    const { segment } = ex;
    writeStatic(ex, keyText);
    const start = ex.pos;
    const path = fieldPath(plan, parent);
    try {
      writeValue(ex, source, path);
    } catch (caught) {
      handleSyncError(ex, caught, position, path, { mark, segment, start });
    }
  };
}

/** Compiles the form of a field for callers that may not see it. */
export function refusedField(
  plan: FieldPlan,
  position: Position,
  refuse: (ex: Execution) => unknown,
): FieldRun {
  return fieldRun(plan, position, (ex) => {
    throw refuse(ex);
  });
}

/** Compiles a field with a resolver: the resolver of the schema, or the `fieldResolver` option. */
export function resolverField(
  plan: FieldPlan,
  resolve: NonNullable<FieldPlan['resolve']>,
  position: Position,
): FieldRun {
  const { args, needsInfo, watch } = plan;
  return fieldRun(plan, position, (ex, source, path) => {
    const values = args(ex);
    const info = needsInfo ? createInfo(ex, plan, path) : undefined;
    const resolved = resolve(source, values, ex.inputs.contextValue, info);
    const value = watch === undefined ? resolved : watch(ex.variables, plan.nodes[0] as FieldNode, resolved);
    completeValue(ex, position, value, path, info);
  });
}

type Method = (args: unknown, context: unknown, info: unknown) => unknown;

/** Compiles a field without a resolver: reads the property of that name, and calls it if it is a function. */
export function propertyField(plan: FieldPlan, position: Position): FieldRun {
  const { keyText, name, needsInfo } = plan;
  // Few properties are functions, so the empty arguments are created when a function needs them.
  const args = plan.args === emptyArguments ? () => undefined : plan.args;
  // The code of `fieldRun` once more: a shared closure would call many functions, which V8 does not inline.
  return (ex, source, parent) => {
    const mark = ex.pending.length;
    const { segment } = ex;
    writeStatic(ex, keyText);
    const start = ex.pos;
    const path = fieldPath(plan, parent);
    try {
      const values = args(ex);
      const property = hasProperties(source) ? source[name] : undefined;
      if (typeof property === 'function') callMethod(ex, plan, position, path, { source, values });
      else completeValue(ex, position, property, path, needsInfo ? createInfo(ex, plan, path) : undefined);
    } catch (caught) {
      handleSyncError(ex, caught, position, path, { mark, segment, start });
    }
  };
}

/** Reads the property again, as graphql-js does, and calls it on its object. */
function callMethod(
  ex: Execution,
  plan: FieldPlan,
  position: Position,
  path: ResponsePath,
  { source, values }: { source: unknown; values: unknown },
): void {
  const info = createInfo(ex, plan, path);
  const args = values ?? emptyArguments();
  const value = (source as Record<string, Method>)[plan.name]?.(args, ex.inputs.contextValue, info);
  completeValue(ex, position, value, path, info);
}

/** Like `propertyField`, for built-in scalars. Creates no path, arguments and `info` unless the property is a special value. */
export function leafPropertyField(plan: FieldPlan, position: Position): FieldRun | undefined {
  const { direct } = position;
  if (direct === undefined || plan.definition.args.length > 0) return undefined;
  const writeSpecial = compileSpecialProperty(plan, position);
  return direct === writeIfString
    ? stringProperty(plan, writeSpecial)
    : otherProperty(plan, direct, writeSpecial);
}

/** Writes a property that is a function, promise, error, null or value of another type, or could not be read. */
type SpecialWrite = (...call: [...Parameters<FieldRun>, property: unknown]) => void;

function stringProperty({ keyText, name }: FieldPlan, writeSpecial: SpecialWrite): FieldRun {
  return (ex, source, parent) => {
    const value = propertyOf(source, name);
    if (typeof value !== 'string') writeSpecial(ex, source, parent, value);
    else {
      writeStatic(ex, keyText);
      writeString(ex, value);
    }
  };
}

function otherProperty(
  { keyText, name }: FieldPlan,
  write: DirectWrite,
  writeSpecial: SpecialWrite,
): FieldRun {
  return (ex, source, parent) => {
    const value = propertyOf(source, name);
    writeStatic(ex, keyText);
    if (write(ex, value)) return;
    ex.pos -= keyText.length;
    writeSpecial(ex, source, parent, value);
  };
}

/** The error that a getter threw. */
class ReadError {
  readonly reason: unknown;

  constructor(reason: unknown) {
    this.reason = reason;
  }
}

function propertyOf(source: unknown, name: string): unknown {
  try {
    return hasProperties(source) ? source[name] : undefined;
  } catch (reason) {
    return new ReadError(reason);
  }
}

/** graphql-js reads no properties of primitive values. */
function hasProperties(value: unknown): value is Record<string, unknown> {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

function compileSpecialProperty(plan: FieldPlan, position: Position): SpecialWrite {
  const { keyText } = plan;
  // Reading the property again would call a getter twice, so `fieldRun` passes its value as source.
  const writeProperty = fieldRun(plan, position, (ex, read, path) => {
    const { source, property } = read as { source: unknown; property: unknown };
    if (property instanceof ReadError) throw property.reason;
    const values = plan.args(ex);
    if (typeof property === 'function') callMethod(ex, plan, position, path, { source, values });
    else completeValue(ex, position, property, path, undefined);
  });
  return (ex, source, parent, property) => {
    if (position.nullable && (property === null || property === undefined)) {
      writeStatic(ex, keyText);
      writeStatic(ex, NULL);
    } else writeProperty(ex, { source, property }, parent);
  };
}
