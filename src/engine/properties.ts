import type { Execution } from './execution.ts';
import { makeInfo } from './info.ts';
import { writeIfText } from './leaves.ts';
import {
  type FieldPlan,
  type FieldRun,
  fieldPath,
  hasProperties,
  type Position,
  type ResponsePath,
} from './plan.ts';
import { fill, giveUp } from './positions.ts';
import { NULL, writeBytes, writeKeyText } from './writer.ts';

type Method = (args: unknown, context: unknown, info: unknown) => unknown;

/** A field without a resolver: the property of that name, called when it is a function. */
export function propertyField(plan: FieldPlan, position: Position): FieldRun {
  const { prefix, args, name, wantsInfo } = plan;
  return (ex, source, parent) => {
    const mark = ex.parts.length;
    const { segment } = ex;
    writeBytes(ex, prefix);
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
  const value = (source as Record<string, Method>)[plan.name]?.(given, ex.inputs.contextValue, info);
  fill(ex, position, value, path, info);
}

/** The same for fields of built-in scalars: no path, no arguments, no info unless the property is something special. */
export function leafProperty(plan: FieldPlan, position: Position): FieldRun | undefined {
  const { prefix, name } = plan;
  const { nullable, direct: write } = position;
  if (write === undefined || plan.definition.args.length > 0) return undefined;
  const textual = write === writeIfText;
  const special = specialProperty(plan, position);
  return (ex, source, parent) => {
    let value: unknown;
    try {
      value = hasProperties(source) ? source[name] : undefined;
    } catch (caught) {
      special(ex, source, parent, () => {
        throw caught;
      });
      return;
    }
    if (typeof value === 'string' && textual) {
      writeKeyText(ex, prefix, value);
      return;
    }
    writeBytes(ex, prefix);
    if (write(ex, value)) return;
    if (nullable && (value === null || value === undefined)) writeBytes(ex, NULL);
    else {
      ex.pos -= prefix.length;
      special(ex, source, parent, () => value);
    }
  };
}

/** A leaf's property that is a function, a promise, an error, of another type, or missing. */
function specialProperty(
  plan: FieldPlan,
  position: Position,
): (ex: Execution, source: unknown, parent: ResponsePath | undefined, property: () => unknown) => void {
  return (ex, source, parent, property) => {
    const mark = ex.parts.length;
    const { segment } = ex;
    writeBytes(ex, plan.prefix);
    const start = ex.pos;
    const path = fieldPath(plan, parent);
    try {
      const value = property();
      const given = plan.args(ex);
      if (typeof value === 'function') callMethod(ex, plan, position, path, { source, given });
      else fill(ex, position, value, path, undefined);
    } catch (caught) {
      giveUp(ex, caught, position, path, { mark, segment, start });
    }
  };
}
