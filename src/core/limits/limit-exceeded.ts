import { refusalError } from '../errors.ts';
import type { Cost } from './limits.ts';

/** What has a limit. */
type Limited = keyof Cost | 'fragments' | 'operations' | 'merges';

const WORDS: Record<Limited, (most: number) => string> = {
  fields: (most) => `has more than ${most} fields`,
  rootFields: (most) => `has more than ${most} root fields`,
  aliases: (most) => `has more than ${most} aliases`,
  directives: (most) => `has more than ${most} directives`,
  depth: (most) => `is nested deeper than ${most} levels`,
  introspection: (most) => `asks for introspection deeper than ${most} levels`,
  introspectionAliases: (most) => `has more than ${most} aliases in introspection`,
  nesting: (most) => `is nested deeper than ${most} levels, fragments and literals counted`,
  fragments: (most) => `has more than ${most} fragments`,
  operations: (most) => `has more than ${most} operations`,
  merges: (most) => `repeats fields of the same name in the same place, in more than ${most} pairs`,
};

/**
 * Refuses what is over a limit.
 *
 * @throws GraphQLError that names it.
 */
export function exceed(name: Limited, most: number, subject = 'The operation'): never {
  const code = name.replace(/[A-Z]/, '_$&').toUpperCase();
  throw refusalError(`${subject} ${WORDS[name](most)}`, `LIMIT_${code}`);
}
