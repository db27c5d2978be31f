import { types } from 'node:util';
import { type OptionScope, optionError } from './rules.ts';
import { isString } from './values.ts';

const MIN_BYTES = 32;

/** Returns the secrets of an option. The message of the error does not contain them. */
export function secretsOf(scope: OptionScope, name: string, given: unknown): readonly Buffer[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  const secrets = list.flatMap((item) =>
    isString(item) || types.isUint8Array(item) ? Buffer.from(item as string) : [],
  );
  if (secrets.length > 0 && secrets.length === list.length && secrets.every(isLong)) return secrets;
  const lengths = secrets.map(({ length }) => `${length} bytes`);
  const found =
    secrets.length === list.length && lengths.length > 0
      ? lengths.join(', ')
      : Array.isArray(given)
        ? 'a list'
        : typeof given;
  const accepted = `a secret of at least ${MIN_BYTES} bytes that is equal in all processes, or a list of them`;
  throw optionError(scope, `option "${name}" is ${found}; accepted: ${accepted}`);
}

const isLong = ({ length }: Buffer): boolean => length >= MIN_BYTES;
