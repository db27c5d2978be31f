import {
  GraphQLBoolean,
  GraphQLFloat,
  GraphQLID,
  GraphQLInt,
  type GraphQLLeafType,
  GraphQLString,
} from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import { isThenable } from '../execution/types.ts';
import { inspect, OUTPUT_METHOD, outputFunction, toOutput } from './completion-errors.ts';
import type { Complete, Continuation, DirectWrite, Execution } from './execution.ts';
import {
  FALSE,
  isInt,
  NULL,
  TRUE,
  writeInt,
  writeJson,
  writeNumber,
  writeStatic,
  writeString,
} from './json.ts';
import { ignoreRejections, subscribe } from './promises.ts';

/** The direct write of String and ID. */
export const writeIfString: DirectWrite = (ex, value) => {
  if (typeof value !== 'string') return false;
  writeString(ex, value);
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
  writeStatic(ex, value ? TRUE : FALSE);
  return true;
};

/** Built-in scalars with their original output function; a replaced function has to be called. */
const DIRECT_WRITES: ReadonlyMap<unknown, { output: unknown; write: DirectWrite }> = new Map(
  (
    [
      [GraphQLString, writeIfString],
      [GraphQLID, writeIfString],
      [GraphQLInt, writeIfInt],
      [GraphQLFloat, writeIfNumber],
      [GraphQLBoolean, writeIfBoolean],
    ] as const
  ).map(([type, write]) => [type, { output: outputFunction(type), write }]),
);

/** Returns the writer for a type whose output function can be skipped; undefined if the function has to be called. */
export function directWrite(type: GraphQLLeafType): DirectWrite | undefined {
  const direct = DIRECT_WRITES.get(type);
  return direct?.output === outputFunction(type) ? direct?.write : undefined;
}

/** Completes a value of a leaf type that is neither null nor an error. */
export function completeLeaf(type: GraphQLLeafType): Complete {
  const write = directWrite(type);
  const completeOutput: Complete = (ex, value) => {
    const output = toOutput(type, value);
    if (output === null || output === undefined) {
      throw new Error(
        `Expected ${callOf(type, value)} to return non-nullable value, returned: ${inspect(output)}`,
      );
    }
    return writeOutput(ex, output, type);
  };
  if (write === undefined) return completeOutput;
  return (ex, value, path, info) => (write(ex, value) ? undefined : completeOutput(ex, value, path, info));
}

const callOf = (type: GraphQLLeafType, value: unknown): string =>
  `\`${type.name}.${OUTPUT_METHOD}(${inspect(value)})\``;

/** Writes the result of the output function, as JSON.stringify would. */
function writeOutput(ex: Execution, output: unknown, type: GraphQLLeafType): Continuation | undefined {
  if (typeof output === 'string') writeString(ex, output);
  else if (typeof output === 'number') {
    if (Number.isFinite(output)) writeNumber(ex, output);
    else writeStatic(ex, NULL);
  } else if (typeof output === 'boolean') writeStatic(ex, output ? TRUE : FALSE);
  else if (V17 ? output instanceof Promise : isThenable(output)) {
    // The result is written as it is, without a null check.
    const complete: Complete = (later, result) => writeOutput(later, result, type);
    return (pending) => subscribe(pending, output as PromiseLike<unknown>, complete, undefined);
  } else writeCustomValue(ex, output, type);
  return undefined;
}

/**
 * Writes an object or other value of a custom scalar. Throws for a value that JSON cannot represent: a function, a
 * bigint, a cycle, or one with a `toJSON` that throws.
 */
function writeCustomValue(ex: Execution, output: unknown, { name }: GraphQLLeafType): void {
  const json: string | undefined = JSON.stringify(output);
  if (json === undefined)
    throw new Error(`${name} has the value ${inspect(output)}, which JSON cannot represent`);
  // The JSON of a promise, which nothing reads, is an empty object.
  if (json.includes('{}')) ignoreRejections(ex, output);
  writeJson(ex, json);
}
