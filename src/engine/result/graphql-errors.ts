import { GraphQLError, type GraphQLFormattedError, locatedError, type SourceLocation } from 'graphql';
import { V17 } from '../../execution/graphql-version.ts';
import type { ExecutionOutcome } from '../../execution/types.ts';
import type { Execution } from '../run/execution.ts';
import type { ErrorField, FieldError } from '../run/field-error.ts';
import { keysOf } from '../run/resolve-info.ts';

/** Converts the errors of an execution, in order. */
export function toGraphQLErrors(errors: readonly FieldError[]): GraphQLError[] {
  // Each GraphQLError shows the stack of its original error, and capturing another stack would be most of the
  // cost.
  const limit = Error.stackTraceLimit;
  Reflect.set(Error, 'stackTraceLimit', 0);
  try {
    return errors.map(toGraphQLError);
  } finally {
    Reflect.set(Error, 'stackTraceLimit', limit);
  }
}

/** The parts of an execution that formatting its errors needs. */
type ErrorScope = Pick<Execution, 'program' | 'inputs'>;

/** Masks, formats and reports the errors of one part of a response. */
export function formatFieldErrors(
  errors: readonly FieldError[],
  scope: ErrorScope,
): readonly GraphQLFormattedError[] {
  const { settings } = scope.program;
  return maskErrors(errors, scope) ?? settings.formatErrors(toGraphQLErrors(errors), scope.inputs.origin);
}

/** Formats errors without creating GraphQLErrors; undefined if one of them needs it. */
export function maskErrors(
  errors: readonly FieldError[],
  { program, inputs }: ErrorScope,
): readonly GraphQLFormattedError[] | undefined {
  const { maskError } = program.settings;
  if (maskError === undefined || !errors.every(isMaskable)) return undefined;
  return errors.map(({ reason, field, path }) =>
    maskError(reason as Error, { locations: field?.location().locations, path: keysOf(path) }, inputs.origin),
  );
}

function isMaskable({ reason, field }: FieldError): boolean {
  try {
    return field !== undefined && isPlainError(reason) && hasPlainText(reason);
  } catch {
    return false;
  }
}

function hasPlainText({ name, message }: Error): boolean {
  return name !== 'GraphQLError' && typeof message === 'string';
}

/** An outcome whose errors were masked by `maskError`. */
export class MaskedOutcome implements ExecutionOutcome {
  readonly kind = 'partial';
  readonly isMasked = true;
  readonly body: Buffer;
  readonly #errors: readonly FieldError[];
  #graphqlErrors: readonly GraphQLError[] | undefined;

  constructor(body: Buffer, errors: readonly FieldError[]) {
    this.body = body;
    this.#errors = errors;
  }

  get errors(): readonly GraphQLError[] {
    this.#graphqlErrors ??= toGraphQLErrors(this.#errors);
    return this.#graphqlErrors;
  }
}

function toGraphQLError(error: FieldError): GraphQLError {
  try {
    return convert(error);
  } catch (cause) {
    // A getter of the reason has thrown. The other fields and errors of the response remain.
    const originalError = new Error('A resolver threw an error whose properties cannot be read', { cause });
    return locatedError(originalError, error.field?.nodes, keysOf(error.path));
  }
}

/** Creates the GraphQLError that graphql-js would create. */
function convert({ reason, field, path }: FieldError): GraphQLError {
  if (field === undefined) return reason instanceof GraphQLError ? reason : locatedError(reason, undefined);
  if (isPlainError(reason) && typeof reason.message === 'string')
    return fromPlainError(reason, field, keysOf(path));
  return locatedError(reason, field.nodes, keysOf(path));
}

/**
 * `new GraphQLError(message, { nodes, path, originalError })` at a lower cost: lines are counted once per
 * field, and the stack of the original error is formatted when it is read.
 */
function fromPlainError(originalError: Error, field: ErrorField, path: (string | number)[]): GraphQLError {
  const message = originalError.message;
  const options = V17 ? [message, { cause: originalError }] : [message];
  const error: object = Reflect.construct(Error, options, GraphQLError);
  const { source, positions, locations } = field.location();
  Object.assign(error, { path, locations: locations?.map(copyOf), extensions: Object.create(null) });
  Object.defineProperty(error, 'message', { value: message, enumerable: true });
  defineHidden(error, 'name', 'GraphQLError');
  defineHidden(error, 'nodes', field.nodes);
  defineHidden(error, 'source', source);
  defineHidden(error, 'positions', positions);
  defineHidden(error, 'originalError', originalError);
  Object.defineProperty(error, 'stack', { configurable: true, get: () => originalError.stack });
  return error as GraphQLError;
}

function copyOf({ line, column }: SourceLocation): SourceLocation {
  return { line, column };
}

function defineHidden(error: object, name: string, value: unknown): void {
  Object.defineProperty(error, name, { value, enumerable: false, configurable: true, writable: true });
}

/** Properties that `locatedError` copies from an error into the response. */
const COPIED_PROPERTIES = ['path', 'nodes', 'source', 'positions', 'extensions'];

/** An Error without any property that `locatedError` would copy. */
function isPlainError(reason: unknown): reason is Error {
  return reason instanceof Error && !COPIED_PROPERTIES.some((name) => name in reason);
}
