import { emptyArguments } from './arguments.ts';
import type { Execution } from './execution.ts';
import { NULL, writeFixed } from './fixed.ts';
import { makeInfo } from './info.ts';
import { writeIfText } from './leaves.ts';
import {
  type DirectWrite,
  type FieldPlan,
  type FieldRun,
  fieldPath,
  hasProperties,
  type Position,
  type ResponsePath,
} from './plan.ts';
import { fill, giveUp } from './positions.ts';
import { writeText } from './writer.ts';

type Method = (args: unknown, context: unknown, info: unknown) => unknown;

/** A field without a resolver: the property of that name, called when it is a function. */
export function propertyField(plan: FieldPlan, position: Position): FieldRun {
  const { prefix, name, wantsInfo } = plan;
  // Most properties take none and are no functions: nobody would see an empty object.
  const args = plan.args === emptyArguments ? () => undefined : plan.args;
  return (ex, source, parent) => {
    const mark = ex.parts.length;
    const { segment } = ex;
    writeFixed(ex, prefix);
    const start = ex.pos;
    const path = fieldPath(plan, parent);
    try {
      const given = args(ex);
      const property = hasProperties(source) ? source[name] : undefined;
      if (typeof property === 'function') callMethod(ex, plan, position, path, { source, given });
      else fill(ex, position, property, path, wantsInfo ? makeInfo(ex, plan, path) : undefined);
    } catch (caught) {
      giveUp(ex, caught, position, path, { mark, segment, start });
    }
  };
}

/** Reads the property once more, as graphql-js does, and calls it on its object. */
function callMethod(
  ex: Execution,
  plan: FieldPlan,
  position: Position,
  path: ResponsePath,
  { source, given }: { source: unknown; given: unknown },
): void {
  const info = makeInfo(ex, plan, path);
  const value = (source as Record<string, Method>)[plan.name]?.(
    given ?? emptyArguments(),
    ex.inputs.contextValue,
    info,
  );
  fill(ex, position, value, path, info);
}

/** The same for fields of built-in scalars: no path, no arguments, no info unless the property is something special. */
export function leafProperty(plan: FieldPlan, position: Position): FieldRun | undefined {
  const { direct } = position;
  if (direct === undefined || plan.definition.args.length > 0) return undefined;
  const special = specialProperty(plan, position);
  return direct === writeIfText ? textProperty(plan, special) : otherProperty(plan, direct, special);
}

/** Writes a leaf's property that is a function, a promise, an error, null, of another type, or could not be read. */
type Special = (ex: Execution, source: unknown, parent: ResponsePath | undefined, property: unknown) => void;

function textProperty({ prefix, name }: FieldPlan, special: Special): FieldRun {
  return (ex, source, parent) => {
    const value = propertyOf(source, name);
    if (typeof value !== 'string') special(ex, source, parent, value);
    else {
      writeFixed(ex, prefix);
      writeText(ex, value);
    }
  };
}

function otherProperty({ prefix, name }: FieldPlan, write: DirectWrite, special: Special): FieldRun {
  return (ex, source, parent) => {
    const value = propertyOf(source, name);
    writeFixed(ex, prefix);
    if (write(ex, value)) return;
    ex.pos -= prefix.length;
    special(ex, source, parent, value);
  };
}

/** What reading a property has thrown. */
class Thrown {
  readonly reason: unknown;

  constructor(reason: unknown) {
    this.reason = reason;
  }
}

function propertyOf(source: unknown, name: string): unknown {
  try {
    return hasProperties(source) ? source[name] : undefined;
  } catch (reason) {
    return new Thrown(reason);
  }
}

function specialProperty(plan: FieldPlan, position: Position): Special {
  return (ex, source, parent, property) => {
    const mark = ex.parts.length;
    const { segment } = ex;
    writeFixed(ex, plan.prefix);
    if (position.nullable && (property === null || property === undefined)) {
      writeFixed(ex, NULL);
      return;
    }
    const start = ex.pos;
    const path = fieldPath(plan, parent);
    try {
      if (property instanceof Thrown) throw property.reason;
      const given = plan.args(ex);
      if (typeof property === 'function') callMethod(ex, plan, position, path, { source, given });
      else fill(ex, position, property, path, undefined);
    } catch (caught) {
      giveUp(ex, caught, position, path, { mark, segment, start });
    }
  };
}
