import { GraphQLError, locatedError, type SourceLocation } from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import type { Execution } from './execution.ts';
import { isPlain } from './masked.ts';
import type { FieldPlan, Position, ResponsePath } from './plan.ts';

/** A failure on its way up, tied to the place where it happened. Cheap: the GraphQLError is made when it is answered. */
export class Fault {
  readonly error: unknown;
  readonly plan: FieldPlan | undefined;
  readonly path: ResponsePath | undefined;

  constructor(error: unknown, plan: FieldPlan | undefined, path: ResponsePath | undefined) {
    this.error = error;
    this.plan = plan;
    this.path = path;
  }
}

/** What was caught at a position: a fault from below keeps its place. */
export function faultAt(caught: unknown, position: Position, path: ResponsePath | undefined): Fault {
  return caught instanceof Fault ? caught : new Fault(caught, position.plan, path);
}

/** Makes a position null and keeps its error, unless the position or one above it is null already. */
export function record(ex: Execution, fault: Fault, path: ResponsePath | undefined): void {
  ex.nulled ??= new Set();
  for (let at = path; at !== undefined; at = at.prev) if (ex.nulled.has(at)) return;
  if (ex.nulled.has(undefined)) return;
  ex.nulled.add(path);
  ex.faults ??= [];
  ex.faults.push(fault);
}

/** The keys of a path from the root on. */
function keysOf(path: ResponsePath | undefined): (string | number)[] {
  const keys: (string | number)[] = [];
  for (let at = path; at !== undefined; at = at.prev) keys.push(at.key);
  return keys.reverse();
}

/** The GraphQLError graphql-js would have made. */
function toGraphQLError(fault: Fault): GraphQLError {
  const { error, plan, path } = fault;
  if (plan === undefined) return rootError(error);
  if (isPlain(error)) return plainError(error, plan, keysOf(path));
  return locatedError(error, plan.nodes, keysOf(path));
}

function rootError(error: unknown): GraphQLError {
  return error instanceof GraphQLError ? error : locatedError(error, undefined);
}

/** The GraphQLErrors of an execution, in order. */
export function toGraphQLErrors(faults: readonly Fault[]): GraphQLError[] {
  // Every GraphQLError made here shows its original's stack: capturing another one for each would be most of the cost.
  const limit = Error.stackTraceLimit;
  Reflect.set(Error, 'stackTraceLimit', 0);
  try {
    return faults.map(toGraphQLError);
  } finally {
    Reflect.set(Error, 'stackTraceLimit', limit);
  }
}

/**
 * `new GraphQLError(message, { nodes, path, originalError })` without its costs: line counting is done once per field,
 * and the original's stack is rendered when somebody reads it.
 */
function plainError(originalError: Error, plan: FieldPlan, path: (string | number)[]): GraphQLError {
  const message = originalError.message;
  const options = V17 ? [message, { cause: originalError }] : [message];
  const error: object = Reflect.construct(Error, options, GraphQLError);
  const { source, positions, locations } = plan.place();
  Object.assign(error, { path, locations: locations?.map(copyOf), extensions: Object.create(null) });
  Object.defineProperty(error, 'message', { value: message, enumerable: true });
  hide(error, 'name', 'GraphQLError');
  hide(error, 'nodes', plan.nodes);
  hide(error, 'source', source);
  hide(error, 'positions', positions);
  hide(error, 'originalError', originalError);
  Object.defineProperty(error, 'stack', { configurable: true, get: () => originalError.stack });
  return error as GraphQLError;
}

function copyOf({ line, column }: SourceLocation): SourceLocation {
  return { line, column };
}

function hide(error: object, name: string, value: unknown): void {
  Object.defineProperty(error, name, { value, enumerable: false, configurable: true, writable: true });
}
