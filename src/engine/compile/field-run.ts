import type { ResponsePath } from 'graphql';
import { completeValue, handleSyncError } from '../complete/complete-value.ts';
import { writeStatic } from '../json/static-text.ts';
import type { Execution } from '../run/execution.ts';
import { type FieldPlan, type FieldRun, fieldPath, type Position } from '../run/plan.ts';
import { createInfo } from '../run/resolve-info.ts';

/** Resolves the value of a field and completes it. */
type WriteValue = (ex: Execution, source: unknown, path: ResponsePath) => void;

/** Writes the key of a field, then its value; handles the errors of both. */
export function fieldRun(plan: FieldPlan, position: Position, writeValue: WriteValue): FieldRun {
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

/** Compiles a field with a resolver: the resolver of the schema, or the `fieldResolver` option. */
export function resolverField(
  plan: FieldPlan,
  resolve: NonNullable<FieldPlan['resolve']>,
  position: Position,
): FieldRun {
  const { args, needsInfo } = plan;
  return fieldRun(plan, position, (ex, source, path) => {
    const values = args(ex);
    const info = needsInfo ? createInfo(ex, plan, path) : undefined;
    const value = resolve(source, values, ex.inputs.contextValue, info);
    completeValue(ex, position, value, path, info);
  });
}
