import { createSecretKey, type KeyObject } from 'node:crypto';
import { types } from 'node:util';
import {
  assertSync,
  type OptionScope,
  optionError,
  resolveOptions,
  wrongReturnValue,
} from '../options/resolve-options.ts';
import { isString, optionalFunction, positive, type Rules, unchecked } from '../options/rules.ts';

/** The option `cursors` after checks. */
export interface CursorSettings {
  /** The first one signs. */
  readonly keys: readonly KeyObject[];
  /** Milliseconds. */
  readonly maxAge: number;
  /** Returns the user of a context; undefined for none. */
  user(context: unknown): string | number | undefined;
}

interface Given {
  readonly key: unknown;
  readonly user: ((context: unknown) => unknown) | undefined;
  readonly maxAge: number;
}

const DAY = 86_400_000;
const MIN_BYTES = 32;

const RULES: Rules<Given> = {
  key: unchecked,
  user: optionalFunction(),
  maxAge: positive(DAY, 'milliseconds'),
};

/** Checks the option `cursors` and fills in the defaults; undefined if the option is not set. */
export function resolveCursors(scope: OptionScope, given: unknown): CursorSettings | undefined {
  if (given === undefined) return undefined;
  const within = { ...scope, within: 'cursors' };
  const { key, user, maxAge } = resolveOptions<Given>(within, given, RULES);
  return {
    keys: secretsOf(within, key).map((secret) => createSecretKey(secret)),
    maxAge,
    user: (context) => userOf(within, user?.(context)),
  };
}

/** The message of the error does not contain the secret. */
function secretsOf(scope: OptionScope, key: unknown): readonly Buffer[] {
  const list: readonly unknown[] = Array.isArray(key) ? key : [key];
  const secrets = list.flatMap((item) =>
    isString(item) || types.isUint8Array(item) ? Buffer.from(item as string) : [],
  );
  if (secrets.length > 0 && secrets.length === list.length && secrets.every(isLong)) return secrets;
  const lengths = secrets.map(({ length }) => `${length} bytes`);
  const found = secrets.length === list.length && lengths.length > 0 ? lengths.join(', ') : typeof key;
  const accepted = `a secret of at least ${MIN_BYTES} bytes that is equal in all processes, or a list of them`;
  throw optionError(scope, `option "cursors.key" is ${found}; accepted: ${accepted}`);
}

const isLong = ({ length }: Buffer): boolean => length >= MIN_BYTES;

function userOf(scope: OptionScope, value: unknown): string | number | undefined {
  if (value === undefined || value === null) return undefined;
  assertSync(value, scope, 'user');
  if (typeof value === 'string' || Number.isFinite(value)) return value as string | number;
  throw wrongReturnValue(scope, 'user', value, 'a string, a finite number, undefined or null');
}
