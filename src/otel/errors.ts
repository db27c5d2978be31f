import { type Attributes, type Span, SpanStatusCode } from '@opentelemetry/api';
import { readError } from '../diagnostics/error-facts.ts';
import { OTHER } from './names.ts';

/** The events of one span; more errors are only counted. */
const MAX_EVENTS = 10;

/**
 * Returns the value of `error.type`: the code of the first error or, for an unexpected error, the name of its
 * class.
 */
export function errorType(errors: readonly unknown[]): string {
  const { code, name, originalError } = readError(errors[0]);
  return code ?? (originalError === undefined ? name : readError(originalError).name) ?? OTHER;
}

/** Sets the status of a span, and adds an event for each error. */
export function recordErrors(span: Span, type: string, errors: readonly unknown[]): void {
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.setAttributes({ 'error.type': type, 'graphql.error.count': errors.length });
  for (const error of errors.slice(0, MAX_EVENTS)) span.addEvent('graphql.error', attributesOf(error));
}

function attributesOf(value: unknown): Attributes {
  const { message, code, path, locations, originalError } = readError(value);
  const attributes: Attributes = { 'graphql.error.message': message };
  if (path !== undefined) attributes['graphql.error.path'] = formatPath(path);
  if (locations !== undefined) attributes['graphql.error.locations'] = JSON.stringify(locations);
  if (code !== undefined) attributes['graphql.error.code'] = code;
  const original = readError(originalError);
  // A GraphQLError is not an exception: it is meant for the client.
  if (originalError !== undefined && original.name !== 'GraphQLError') {
    attributes['exception.type'] = original.name ?? OTHER;
    attributes['exception.message'] = original.message;
  }
  return attributes;
}

/** Formats a path as in `user.friends[0].name`. */
const formatPath = (path: readonly (string | number)[]): string =>
  path
    .map((key, index) => (typeof key === 'number' ? `[${key}]` : `${index === 0 ? '' : '.'}${key}`))
    .join('');
