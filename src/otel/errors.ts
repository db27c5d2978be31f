import { type Attributes, type Span, SpanStatusCode } from '@opentelemetry/api';
import { OTHER } from './names.ts';

/** The events of one span; more errors are only counted. */
const MAX_EVENTS = 10;

/** The members of a GraphQLError, or of any other error, that are used here. */
interface ErrorLike {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly code?: unknown;
  readonly path?: readonly (string | number)[] | undefined;
  readonly locations?: readonly unknown[] | undefined;
  readonly extensions?: { readonly code?: unknown } | undefined;
  readonly originalError?: unknown;
}

/**
 * Returns the value of `error.type`: the code of the first error or, for an unexpected error, the name of its
 * class.
 */
export function errorType(errors: readonly unknown[]): string | undefined {
  const [first] = errors;
  if (first === undefined) return undefined;
  const error = toErrorLike(first);
  const { name } = toErrorLike(error.originalError ?? error);
  const type = error.extensions?.code ?? error.code ?? name;
  return typeof type === 'string' && type !== '' ? type : OTHER;
}

/** Sets the status of a span, and adds an event for each error. */
export function recordErrors(span: Span, type: string, errors: readonly unknown[]): void {
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.setAttributes({ 'error.type': type, 'graphql.error.count': errors.length });
  for (const error of errors.slice(0, MAX_EVENTS)) span.addEvent('graphql.error', attributesOf(error));
}

function attributesOf(value: unknown): Attributes {
  const { message, path, locations, extensions, originalError } = toErrorLike(value);
  const attributes: Attributes = { 'graphql.error.message': String(message) };
  if (path !== undefined) attributes['graphql.error.path'] = formatPath(path);
  if (locations !== undefined) attributes['graphql.error.locations'] = JSON.stringify(locations);
  if (typeof extensions?.code === 'string') attributes['graphql.error.code'] = extensions.code;
  const original = toErrorLike(originalError);
  // A GraphQLError is not an exception: it is meant for the client.
  if (originalError !== undefined && original.name !== 'GraphQLError') {
    attributes['exception.type'] = String(original.name ?? OTHER);
    attributes['exception.message'] = String(original.message);
  }
  return attributes;
}

/** Formats a path as in `user.friends[0].name`. */
const formatPath = (path: readonly (string | number)[]): string =>
  path
    .map((key, index) => (typeof key === 'number' ? `[${key}]` : `${index === 0 ? '' : '.'}${key}`))
    .join('');

const toErrorLike = (value: unknown): ErrorLike =>
  typeof value === 'object' && value !== null ? value : { message: value };
