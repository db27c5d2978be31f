import {
  GraphQLBoolean,
  GraphQLFloat,
  GraphQLID,
  GraphQLInt,
  type GraphQLLeafType,
  GraphQLString,
} from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import type { Execution } from './execution.ts';
import { FALSE, type Fixed, NULL, TRUE, writeFixed } from './fixed.ts';
import { inspect } from './inspect.ts';
import { isInt, writeInt, writeNumber } from './numbers.ts';
import { OUTPUT_METHOD, outputFunction, toOutput } from './output.ts';
import {
  type Complete,
  type Deferral,
  type DirectWrite,
  type FieldPlan,
  isThenable,
  type ResponsePath,
} from './plan.ts';
import { subscribe } from './settling.ts';
import { writeStringified } from './stringified.ts';
import { writeText } from './writer.ts';

/** Strings and IDs. */
export const writeIfText: DirectWrite = (ex, value) => {
  if (typeof value !== 'string') return false;
  writeText(ex, value);
  return true;
};

const writeIfInt: DirectWrite = (ex, value) => {
  if (!isInt(value)) return false;
  writeInt(ex, value);
  return true;
};

const writeIfNumber: DirectWrite = (ex, value) => {
  if (typeof value !== 'number' || !Number.isFinite(value)) return false;
  writeNumber(ex, value);
  return true;
};

const writeIfBoolean: DirectWrite = (ex, value) => {
  if (typeof value !== 'boolean') return false;
  writeFixed(ex, value ? TRUE : FALSE);
  return true;
};

/** Built-in scalars by identity, with the function they came with: a patched one is respected. */
const DIRECT: ReadonlyMap<unknown, { output: unknown; write: DirectWrite }> = new Map(
  (
    [
      [GraphQLString, writeIfText],
      [GraphQLID, writeIfText],
      [GraphQLInt, writeIfInt],
      [GraphQLFloat, writeIfNumber],
      [GraphQLBoolean, writeIfBoolean],
    ] as const
  ).map(([type, write]) => [type, { output: outputFunction(type), write }]),
);

/** How most values of a type can be written without asking it; undefined when it has to be asked. */
export function directWrite(type: GraphQLLeafType): DirectWrite | undefined {
  const direct = DIRECT.get(type);
  return direct?.output === outputFunction(type) ? direct?.write : undefined;
}

/** Completes a value of a leaf type that is neither null nor an error. */
export function completeLeaf(type: GraphQLLeafType, inList: boolean, plan: FieldPlan): Complete {
  const write = directWrite(type);
  const general: Complete = (ex, value, path) => {
    const output = toOutput(type, value);
    if (output === null || output === undefined) throw nothing(type, value, output);
    return writeOutput(ex, output, path, inList ? undefined : plan.prefix);
  };
  if (write === undefined) return general;
  return (ex, value, path, info) => (write(ex, value) ? undefined : general(ex, value, path, info));
}

function nothing(type: GraphQLLeafType, value: unknown, output: unknown): Error {
  return new Error(
    `Expected \`${type.name}.${OUTPUT_METHOD}(${inspect(value)})\` to return non-nullable value, returned: ${inspect(output)}`,
  );
}

/** Writes what a leaf type made of a value, as JSON.stringify would have. */
function writeOutput(
  ex: Execution,
  output: unknown,
  path: ResponsePath,
  prefix: Fixed | undefined,
): Deferral | undefined {
  if (typeof output === 'string') writeText(ex, output);
  else if (typeof output === 'number') {
    if (Number.isFinite(output)) writeNumber(ex, output);
    else writeFixed(ex, NULL);
  } else if (typeof output === 'boolean') writeFixed(ex, output ? TRUE : FALSE);
  else if (V17 ? output instanceof Promise : isThenable(output)) {
    // What it comes to is written as it is, null included.
    const complete: Complete = (later, settled, at) => writeOutput(later, settled, at, prefix);
    return (slot) => subscribe(slot, output as PromiseLike<unknown>, complete, undefined);
  } else writeStringified(ex, output, path, prefix);
  return undefined;
}
