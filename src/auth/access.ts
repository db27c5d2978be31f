import { type FieldNode, GraphQLError } from 'graphql';
import type { AuthCheck } from '../../types/auth.ts';
import type { CallerAccess, ExecutionInputs } from '../execution/types.ts';
import { optionError } from '../options/rules.ts';
import { AUTH_OPTIONS } from '../options/scopes.ts';
import type { Condition } from './requirements.ts';

/** A caller of one operation. */
export interface Caller {
  /** Undefined if the caller is not signed in. */
  readonly scopes: ReadonlySet<string> | undefined;
  /** The policies that the option `policies` has granted, of those that the operation names. */
  readonly policies: ReadonlySet<string>;
}

const holds = (held: ReadonlySet<string>, { anyOf }: Condition): boolean =>
  anyOf.some((list) => list.every((name) => held.has(name)));

/** Whether a caller meets a condition. */
export function isMet(condition: Condition, { scopes, policies }: Caller): boolean {
  if (condition.kind === 'policies') return holds(policies, condition);
  return scopes !== undefined && (condition.kind === 'authenticated' || holds(scopes, condition));
}

/** The names of some conditions. */
export const namesOf = (conditions: Iterable<Condition>, kind: Condition['kind']): readonly string[] => [
  ...new Set([...conditions].flatMap((each) => (each.kind === kind ? each.anyOf.flat() : []))),
];

const UNAUTHENTICATED = 'UNAUTHENTICATED';

/** What the caller of one operation may see. Part of the inputs of its execution. */
export class Access implements CallerAccess {
  readonly #caller: Caller;
  readonly #conditions: readonly Condition[];
  readonly #schema: { readonly schemaId: string } | undefined;
  /** The conditions of the operation that the caller does not meet. */
  readonly #denied: readonly Condition[];
  #key: string | undefined;
  /** Whether a value was refused during the execution. */
  hasRefused = false;

  constructor(
    caller: Caller,
    conditions: readonly Condition[],
    schema: { readonly schemaId: string } | undefined,
  ) {
    this.#caller = caller;
    this.#conditions = conditions;
    this.#schema = schema;
    this.#denied = conditions.filter((each) => !isMet(each, caller));
  }

  /** Whether something that the operation selects has a requirement. */
  get hasConditions(): boolean {
    return this.#conditions.length > 0;
  }

  /** Whether the caller may see everything that the operation selects. */
  get isUnrestricted(): boolean {
    return this.#denied.length === 0;
  }

  /** What the caller has of the scopes and policies that matter to the operation; empty if none matters. */
  get key(): string {
    this.#key ??= this.hasConditions ? keyOf(this.#caller, this.#conditions) : '';
    return this.#key;
  }

  /** Like `key`, for stored results: in a later version of the schema, a field may require something else. */
  get storedKey(): string {
    return this.hasConditions ? `${this.#schema?.schemaId} ${this.key}` : '';
  }

  denies(conditions: readonly Condition[]): boolean {
    return this.#denied.some((each) => conditions.includes(each));
  }

  /** Whether the operation's key in a cache says if the caller has this scope. */
  isKnown(scope: string | undefined): boolean {
    if (scope === undefined) return this.#conditions.some(({ kind }) => kind !== 'policies');
    return namesOf(this.#conditions, 'scopes').includes(scope);
  }

  has(scope: string | undefined): boolean {
    const { scopes } = this.#caller;
    return scope === undefined ? scopes !== undefined : scopes?.has(scope) === true;
  }

  error(subject: string, nodes?: readonly FieldNode[]): GraphQLError {
    return authError(this.#caller, subject, nodes);
  }
}

/** The access of an execution, which only `authorize` creates. */
export const accessOf = ({ access }: ExecutionInputs): Access | undefined =>
  access instanceof Access ? access : undefined;

/** Creates the error of something that a caller may not see. It does not say what is missing. */
function authError(
  { scopes }: Pick<Caller, 'scopes'>,
  subject: string,
  nodes?: readonly FieldNode[],
): GraphQLError {
  const code = scopes === undefined ? UNAUTHENTICATED : 'FORBIDDEN';
  const message =
    code === UNAUTHENTICATED
      ? `${subject} requires authentication`
      : `You do not have the permission that ${subject} requires`;
  return new GraphQLError(message, { ...(nodes && { nodes }), extensions: { code } });
}

/** The HTTP status of an error that `Access` has created. */
export const statusOf = ({ extensions }: GraphQLError): number =>
  extensions['code'] === UNAUTHENTICATED ? 401 : 403;

/** The error of an execution without a caller, which must not see anything that has a requirement. */
export const noCaller = (subject: string): GraphQLError => authError({ scopes: undefined }, subject);

function keyOf({ scopes, policies }: Caller, conditions: readonly Condition[]): string {
  const relevant = namesOf(conditions, 'scopes').filter((name) => scopes?.has(name));
  const granted = namesOf(conditions, 'policies').filter((name) => policies.has(name));
  return JSON.stringify([scopes === undefined ? 0 : 1, relevant.sort(), granted.sort()]);
}

/**
 * `info.auth` of a resolver. An answer that the key of the result does not contain makes the result uncacheable, and is
 * an error in a subscription that several clients share.
 */
export class ResolverAuth implements AuthCheck {
  readonly #inputs: ExecutionInputs;

  constructor(inputs: ExecutionInputs) {
    this.#inputs = inputs;
  }

  get isAuthenticated(): boolean {
    return this.#read(undefined);
  }

  /** An arrow function, so that resolvers may destructure it. */
  readonly has = (...scopes: string[]): boolean => scopes.filter((scope) => !this.#read(scope)).length === 0;

  readonly assert = (...scopes: string[]): void => {
    if (this.isAuthenticated && this.has(...scopes)) return;
    throw accessOf(this.#inputs)?.error('this field') ?? noCaller('this field');
  };

  #read(scope: string | undefined): boolean {
    const { caching, isShared } = this.#inputs;
    const access = accessOf(this.#inputs);
    if (access?.isKnown(scope) !== true) {
      if (isShared === true) throw sharedError(scope);
      caching?.restrict({ maxAge: 0, sharedMaxAge: 0 });
    }
    return access?.has(scope) === true;
  }
}

const sharedError = (scope: string | undefined): TypeError =>
  optionError(
    AUTH_OPTIONS,
    `info.auth was asked ${scope === undefined ? 'whether the caller is signed in' : `for the scope "${scope}"`} in a subscription that several clients share; declare it in the schema, or return no key from "share"`,
  );
