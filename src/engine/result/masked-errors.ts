import type { ResponsePath } from 'graphql';
import type { ErrorField, FieldError } from '../run/field-error.ts';

/** Properties that `locatedError` copies from an error, so that clients may see them. */
const COPIED_PROPERTIES = ['path', 'nodes', 'source', 'positions', 'extensions'];

/** An Error without any property that `locatedError` would copy. */
export function isPlainError(reason: unknown): reason is Error {
  return reason instanceof Error && !COPIED_PROPERTIES.some((name) => name in reason);
}

/** Whether masking leaves nothing of an error but its path and locations. */
export function isFullyMasked({ reason, field }: FieldError): boolean {
  return field !== undefined && isPlainError(reason) && reason.name !== 'GraphQLError';
}

/** The JSON of `errors` if all of them are fully masked, without making GraphQLErrors. */
export function maskedErrorsJson(errors: readonly FieldError[], message: string): string {
  const messageJson = JSON.stringify(message);
  const members = errors.map(
    ({ field, path }) => `{"message":${messageJson}${placeJson(field as ErrorField, path)}}`,
  );
  return `[${members.join(',')}]`;
}

function placeJson(field: ErrorField, path: ResponsePath | undefined): string {
  const { locationsJson } = field.location();
  return `${locationsJson},"path":[${pathJson(path)}]`;
}

function pathJson(path: ResponsePath | undefined): string {
  let json = '';
  for (let at = path; at !== undefined; at = at.prev) {
    // Names of GraphQL need no escapes.
    const key = typeof at.key === 'number' ? String(at.key) : `"${at.key}"`;
    json = json === '' ? key : `${key},${json}`;
  }
  return json;
}
