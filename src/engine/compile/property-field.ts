import type { ResponsePath } from 'graphql';
import { completeValue } from '../complete/complete-value.ts';
import { writeIfString } from '../complete/leaf.ts';
import { NULL, writeStatic } from '../json/static-text.ts';
import { writeString } from '../json/strings.ts';
import type { Execution } from '../run/execution.ts';
import type { DirectWrite, FieldPlan, FieldRun, Position } from '../run/plan.ts';
import { createInfo } from '../run/resolve-info.ts';
import { emptyArguments } from './arguments.ts';
import { fieldRun } from './field-run.ts';

type Method = (args: unknown, context: unknown, info: unknown) => unknown;

/** Compiles a field without a resolver: reads the property of that name, and calls it if it is a function. */
export function propertyField(plan: FieldPlan, position: Position): FieldRun {
  const { name, needsInfo } = plan;
  // Few properties are functions, so the empty arguments are created when a function needs them.
  const args = plan.args === emptyArguments ? () => undefined : plan.args;
  return fieldRun(plan, position, (ex, source, path) => {
    const values = args(ex);
    const property = hasProperties(source) ? source[name] : undefined;
    if (typeof property === 'function') callMethod(ex, plan, position, path, { source, values });
    else completeValue(ex, position, property, path, needsInfo ? createInfo(ex, plan, path) : undefined);
  });
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
  const value = (source as Record<string, Method>)[plan.name]?.(
    values ?? emptyArguments(),
    ex.inputs.contextValue,
    info,
  );
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
type SpecialWrite = (
  ex: Execution,
  source: unknown,
  parent: ResponsePath | undefined,
  property: unknown,
) => void;

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
    const { source, property } = read as SpecialProperty;
    if (property instanceof ReadError) throw property.reason;
    const values = plan.args(ex);
    if (typeof property === 'function') callMethod(ex, plan, position, path, { source, values });
    else completeValue(ex, position, property, path, undefined);
  });
  return (ex, source, parent, property) => {
    if (position.nullable && (property === null || property === undefined)) {
      writeStatic(ex, keyText);
      writeStatic(ex, NULL);
    } else writeProperty(ex, { source, property } satisfies SpecialProperty, parent);
  };
}

interface SpecialProperty {
  readonly source: unknown;
  readonly property: unknown;
}
