import type { CachePolicy } from '../../../types/caching.ts';
import { CONDITIONS, type Condition, conditionsOf, variantKey } from '../../execution/document.ts';
import type { CachedOperation, MemoryAccount } from '../../execution/types.ts';
import { emptyHint, type HintState, restrictHint } from './hints.ts';
import { OperationTags } from './operation-tags.ts';
import type { SchemaHints } from './schema-hints.ts';
import { type ConditionValues, type VisitField, visitSelectedFields } from './selected-fields.ts';
import { hasTags } from './tag-formats.ts';

/** The policy of results that must not be cached. */
export const UNCACHEABLE: CachePolicy = Object.freeze({
  maxAge: 0,
  sharedMaxAge: 0,
  scope: 'PUBLIC',
  vary: Object.freeze([]),
  tags: Object.freeze([]),
});

/** The longest lifetime of HTTP (RFC 9111 §1.2.2). Longer ones would be written with an exponent. */
const MAX_SECONDS = 2 ** 31;

/** Creates the policy of a result from its combined hints. HTTP has whole seconds. */
export function toPolicy(
  { maxAge = 0, sharedMaxAge = maxAge, scope = 'PUBLIC', vary = [] }: HintState,
  tags: readonly string[],
): CachePolicy {
  return { maxAge: toSeconds(maxAge), sharedMaxAge: toSeconds(sharedMaxAge), scope, vary, tags };
}

const toSeconds = (value: number): number => Math.min(Math.floor(value), MAX_SECONDS);

export const isCacheable = ({ maxAge, sharedMaxAge }: CachePolicy): boolean => maxAge > 0 || sharedMaxAge > 0;

const MAX_VARIANTS = 64;
/** An estimate of the bytes of a policy and its key. */
const POLICY_BYTES = 300;
const NO_VALUES: ConditionValues = new Map();
const NO_TAGS: readonly string[] = Object.freeze([]);

/**
 * The static cache policy of an operation, from the hints of all fields that it selects. It does not depend
 * on the values that resolvers return: a list that is empty for one user may have private items for another.
 */
export class OperationPolicy {
  readonly #operation: CachedOperation;
  readonly #hints: SchemaHints;
  readonly #account: MemoryAccount;
  readonly #conditions: readonly Condition[];
  /** The policy if each condition may have either value. */
  readonly #strictest: CachePolicy;
  readonly #variants = new Map<string, CachePolicy>();
  #tags: OperationTags | undefined;
  /** The last result of `withTags`, and its policy. */
  #tagged: { readonly policy: CachePolicy; readonly result: CachePolicy } | undefined;

  constructor(operation: CachedOperation, hints: SchemaHints, account: MemoryAccount) {
    this.#operation = operation;
    this.#hints = hints;
    this.#account = account;
    const isQuery = operation.operation.operation === 'query';
    this.#conditions = isQuery ? conditionsOf(operation.operation, operation.document, CONDITIONS) : [];
    this.#strictest = isQuery ? this.#combine(NO_VALUES) : UNCACHEABLE;
  }

  get hints(): SchemaHints {
    return this.#hints;
  }

  /** Returns the policy for the variables of a request, which decide about `@skip` and `@include`. */
  of(variables: Record<string, unknown> | undefined): CachePolicy {
    if (this.#conditions.length === 0) return this.#strictest;
    const key = variantKey(this.#conditions, variables ?? {});
    if (key === undefined) return this.#strictest;
    let policy = this.#variants.get(key);
    if (policy === undefined) {
      if (this.#variants.size >= MAX_VARIANTS || !this.#charge()) return this.#strictest;
      policy = this.#combine(valuesOf(this.#conditions, key));
      this.#variants.set(key, policy);
    }
    return policy;
  }

  /** Returns the tags of the selected fields for the variables of a request; undefined if they are unknown. */
  tagsOf(variables: Record<string, unknown> | undefined): readonly string[] | undefined {
    if (!hasTags(this.#operation.schema)) return NO_TAGS;
    if (this.#tags === undefined) {
      const tags = new OperationTags(this.#operation);
      visitSelectedFields(this.#operation, this.#hints, NO_VALUES, ({ objects }, _isRoot, node) =>
        tags.add(objects, node),
      );
      this.#tags = tags;
    }
    return this.#tags.of(variables);
  }

  /** Adds tags to a policy. Results of most operations share the policy and the tags, also while they are stored. */
  withTags(policy: CachePolicy, tags: readonly string[]): CachePolicy {
    if (this.#tagged?.policy !== policy || this.#tagged.result.tags !== tags) {
      this.#tagged = { policy, result: { ...policy, tags } };
    }
    return this.#tagged.result;
  }

  /** Visits the fields that determine the policy for these variables. */
  visitFields(variables: Record<string, unknown> | undefined, visitField: VisitField): void {
    const key = variantKey(this.#conditions, variables ?? {});
    const values = key === undefined ? NO_VALUES : valuesOf(this.#conditions, key);
    visitSelectedFields(this.#operation, this.#hints, values, visitField);
  }

  #combine(values: ConditionValues): CachePolicy {
    const combined = emptyHint();
    visitSelectedFields(this.#operation, this.#hints, values, ({ hint }) => restrictHint(combined, hint));
    return toPolicy(combined, []);
  }

  #charge(): boolean {
    if (this.#account.charge(POLICY_BYTES)) return true;
    this.#account.charge(-POLICY_BYTES);
    return false;
  }
}

function valuesOf(conditions: readonly Condition[], key: string): ConditionValues {
  return new Map(conditions.map(({ name }, index) => [name, key[index] === '1']));
}
