import type { GraphQLError } from 'graphql';
import { refusalError } from '../../execution/graphql-error.ts';

const MESSAGES = {
  fields: (max: number) => `has more than ${max} fields`,
  selections: (max: number) => `has more than ${max} selections, counting each spread of a fragment`,
  rootFields: (max: number) => `has more than ${max} root fields`,
  aliases: (max: number) => `has more than ${max} aliases`,
  directives: (max: number) => `has more than ${max} directives`,
  depth: (max: number) => `is nested deeper than ${max} levels`,
  introspection: (max: number) => `nests introspection deeper than ${max} levels`,
  introspectionValues: (max: number) =>
    `would return more than ${max} times the values of the standard introspection query`,
  introspectionAliases: (max: number) => `has more than ${max} aliases in introspection`,
  nesting: (max: number) => `is nested deeper than ${max} levels, including fragments and literals`,
  fragments: (max: number) => `has more than ${max} fragments`,
  operations: (max: number) => `has more than ${max} operations`,
  merges: (max: number) => `has more than ${max} pairs of fields with the same name in the same place`,
};

/**
 * Creates the error of a document above a limit; its code is `LIMIT_` and the name, such as
 * `LIMIT_ROOT_FIELDS`.
 */
export function limitExceeded(
  limit: keyof typeof MESSAGES,
  max: number,
  subject = 'The operation',
): GraphQLError {
  const name = limit.replace(/[A-Z]/, '_$&').toUpperCase();
  return refusalError(`${subject} ${MESSAGES[limit](max)}`, `LIMIT_${name}`);
}
