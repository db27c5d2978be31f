import {
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
} from 'graphql';
import type {
  CacheControl,
  CacheHint,
  CachePolicy,
  CacheScope,
  FieldCachePolicy,
} from '../../types/caching.ts';
import {
  CONDITIONS,
  type Condition,
  type ConditionValues,
  conditionsOf,
  conditionValues,
  KeptVariants,
  MAX_VARIANTS,
  variantKey,
} from '../execution/document.ts';
import { unattributedCalls } from '../execution/safe-execution.ts';
import type {
  Caching,
  ExecutionCaching,
  MemoryAccount,
  ObjectTags,
  ValidatedOperation,
} from '../execution/types.ts';
import { isCacheable } from '../http/exchange.ts';
import { formatValue, optionError } from '../options/rules.ts';
import { CACHING_OPTIONS } from '../options/scopes.ts';
import { getOrCreate, isString } from '../options/values.ts';
import {
  assertAnnotations,
  assertHint,
  emptyHint,
  type HintState,
  hintAnnotationOf,
  replaceHint,
  restrictHint,
  type SchemaHints,
  staticHint,
  type VisitField,
  visitSelectedFields,
} from './hints.ts';
import { ALL_TAGS } from './invalidations.ts';
import { hasTags, OperationTags, objectTagsOf } from './operation-tags.ts';
import type { FailsafeStore } from './store.ts';

/** @throws TypeError (code `ERR_OPTION`) for a wrong `@cacheControl` or `@cacheTag` in the schema. */
export function checkAnnotations(schema: GraphQLSchema): void {
  assertAnnotations(schema);
  hasTags(schema);
}

/** What the engines do for the cache policies of executions. */
export const fieldCaching: Caching = {
  isCounted: (definition, isRootField) =>
    isRootField ||
    isCompositeType(getNamedType(definition.type)) ||
    Object.values(hintAnnotationOf(definition)).some((value) => value !== undefined),
  objectTagsOf,
  controlFor: (execution: ExecutionCaching | undefined, definition, isRoot) =>
    new FieldControl(execution as ExecutionPolicy | undefined, definition, isRoot),
};

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
function toPolicy(
  { maxAge = 0, sharedMaxAge = maxAge, scope = 'PUBLIC', vary = [] }: HintState,
  tags: readonly string[],
): CachePolicy {
  return { maxAge: toSeconds(maxAge), sharedMaxAge: toSeconds(sharedMaxAge), scope, vary, tags };
}

const toSeconds = (value: number): number => Math.min(Math.floor(value), MAX_SECONDS);

/** An estimate of the bytes of a policy and its key. */
const POLICY_BYTES = 300;
const NO_VALUES: ConditionValues = new Map();
const NO_TAGS: readonly string[] = Object.freeze([]);

/**
 * The static cache policy of an operation, from the hints of all fields that it selects. It does not depend
 * on the values that resolvers return: a list that is empty for one user may have private items for another.
 */
export class OperationPolicy {
  readonly #operation: ValidatedOperation;
  readonly #hints: SchemaHints;
  readonly #conditions: readonly Condition[];
  /** The policy if each condition may have either value. */
  readonly #strictest: CachePolicy;
  readonly #variants = new KeptVariants((key) => this.#combine(conditionValues(this.#conditions, key)));
  #tags: OperationTags | undefined;
  /** The last result of `withTags`, and its policy. */
  #tagged: { readonly policy: CachePolicy; readonly result: CachePolicy } | undefined;

  constructor(operation: ValidatedOperation, hints: SchemaHints, account: MemoryAccount) {
    this.#operation = operation;
    this.#hints = hints;
    const isQuery = operation.operation.operation === 'query';
    this.#conditions = isQuery ? conditionsOf(operation.operation, operation.document, CONDITIONS) : [];
    account.charge(POLICY_BYTES * Math.min(MAX_VARIANTS, 2 ** this.#conditions.length));
    this.#strictest = isQuery ? this.#combine(NO_VALUES) : UNCACHEABLE;
  }

  get hints(): SchemaHints {
    return this.#hints;
  }

  /** Begins the policy of one execution. `store` has the results that a mutation or an event invalidates. */
  start(variables: Record<string, unknown> | undefined, store: FailsafeStore | undefined): ExecutionCaching {
    return new ExecutionPolicy(this, variables, store);
  }

  /** Returns the policy for the variables of a request, which decide about `@skip` and `@include`. */
  of(variables: Record<string, unknown> | undefined): CachePolicy {
    if (this.#conditions.length === 0) return this.#strictest;
    const key = variantKey(this.#conditions, variables ?? {});
    return (key === undefined ? undefined : this.#variants.get(key)) ?? this.#strictest;
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
    visitSelectedFields(this.#operation, this.#hints, conditionValues(this.#conditions, key), visitField);
  }

  #combine(values: ConditionValues): CachePolicy {
    const combined = emptyHint();
    visitSelectedFields(this.#operation, this.#hints, values, ({ hint }) => restrictHint(combined, hint));
    return toPolicy(combined, []);
  }
}

type Field = GraphQLField<unknown, unknown>;

/** The number of executions of a field, and of those whose resolver replaced its hint. */
interface FieldCalls {
  executed: number;
  replaced: number;
}

/** The cache policy of one execution: the static policy, changed by `info.cacheControl`. */
class ExecutionPolicy implements ExecutionCaching {
  readonly #operation: OperationPolicy;
  readonly #variables: Record<string, unknown> | undefined;
  /** Created for the first field that is counted. */
  #calls: Map<Field, FieldCalls> | undefined;
  /** The calls of resolvers that have read or changed the hints of their fields. */
  #hinted: FieldControl[] | undefined;
  #restriction: HintState | undefined;
  #tags: Set<string> | undefined;
  /** The object whose tags were added last: its fields are executed one after the other. */
  #lastObject: unknown;
  #lastTags: ObjectTags | undefined;
  /** An object has no value for one of its tags. */
  #lacksTag = false;
  readonly #store: FailsafeStore | undefined;
  /** Undefined unless the engine has to report fields. */
  #hasFields: boolean | undefined;
  readonly #unattributed = unattributedCalls();

  constructor(
    operation: OperationPolicy,
    variables: Record<string, unknown> | undefined,
    store: FailsafeStore | undefined,
  ) {
    this.#operation = operation;
    this.#variables = variables;
    this.#store = store;
  }

  count(definition: Field): void {
    this.#callsOf(definition).executed += 1;
    if (this.#hasFields === false) this.#hasFields = true;
  }

  expectFields(): void {
    this.#hasFields ??= false;
  }

  addHintedCall(call: FieldControl): void {
    this.#hinted ??= [];
    this.#hinted.push(call);
    this.#callsOf(call.definition).replaced += call.executions;
  }

  addTags(tags: readonly string[]): void {
    this.#tags ??= new Set();
    for (const tag of tags) this.#tags.add(tag);
  }

  addObjectTags(tags: ObjectTags, source: unknown): void {
    if (source === this.#lastObject && tags === this.#lastTags) return;
    this.#lastObject = source;
    this.#lastTags = tags;
    for (const tag of tags) {
      const values = tag.of(source);
      if (values === undefined) this.#lacksTag = true;
      else this.addTags(values);
    }
  }

  tags(): readonly string[] {
    // Invalidates everything if the tags are unknown.
    return this.#knownTags() ?? [ALL_TAGS];
  }

  invalidate(): Promise<void> | undefined {
    const tags = this.tags();
    return tags.length === 0 ? undefined : this.#store?.invalidateSoon(tags);
  }

  /** Makes the policy of the whole result stricter. */
  restrict(hint: CacheHint): void {
    this.#restriction ??= emptyHint();
    restrictHint(this.#restriction, hint);
  }

  /** Returns the policy of the result, after the execution. */
  policy(): CachePolicy {
    if (this.#hasFields === false || this.#unattributed !== unattributedCalls()) return UNCACHEABLE;
    if (this.#lacksTag) return UNCACHEABLE;
    const isStatic = this.#hinted === undefined && this.#restriction === undefined;
    const combined = isStatic ? this.#operation.of(this.#variables) : toPolicy(this.#combine(), []);
    if (!isCacheable(combined)) return UNCACHEABLE;
    const tags = this.#knownTags();
    if (tags === undefined) return UNCACHEABLE;
    return tags.length === 0 ? combined : this.#operation.withTags(combined, tags);
  }

  #knownTags(): readonly string[] | undefined {
    const tags = this.#operation.tagsOf(this.#variables);
    return tags === undefined || this.#tags === undefined ? tags : [...new Set([...tags, ...this.#tags])];
  }

  /** Combines the hints of the resolvers with the static hints of all other fields. */
  #combine(): HintState {
    const combined = emptyHint();
    this.#operation.visitFields(this.#variables, ({ hint, definitions }, isRoot) => {
      if (definitions.length === 0) restrictHint(combined, hint);
      for (const definition of definitions) {
        if (this.#isReplaced(definition)) continue;
        restrictHint(combined, this.#operation.hints.hintOf(definition, isRoot));
      }
    });
    for (const call of this.#hinted ?? []) restrictHint(combined, call.hint(this.#operation.hints));
    if (this.#restriction !== undefined) restrictHint(combined, this.#restriction);
    return combined;
  }

  /** Whether every execution of a field has a hint of its resolver, instead of the static one. */
  #isReplaced(definition: Field): boolean {
    const calls = this.#calls?.get(definition);
    return calls !== undefined && calls.replaced > 0 && calls.replaced >= calls.executed;
  }

  #callsOf(definition: Field): FieldCalls {
    this.#calls ??= new Map();
    return getOrCreate(this.#calls, definition, () => ({ executed: 0, replaced: 0 }));
  }
}

/**
 * `info.cacheControl` of one call of a resolver. Its members are getters, so that a call of a resolver that
 * does not use it creates one object, and so that resolvers may destructure it.
 */
class FieldControl implements CacheControl {
  readonly definition: Field;
  readonly isRoot: boolean;
  /** The executions of the field that the call is for: several with `resolveMany`. */
  executions = 1;
  readonly #execution: ExecutionPolicy | undefined;
  #policy: FieldPolicy | undefined;

  constructor(execution: ExecutionPolicy | undefined, definition: Field, isRoot: boolean) {
    this.#execution = execution;
    this.definition = definition;
    this.isRoot = isRoot;
  }

  get cacheHint(): FieldCachePolicy {
    if (this.#policy === undefined) {
      this.#policy = new FieldPolicy(staticHint(this.definition));
      this.#execution?.addHintedCall(this);
    }
    return this.#policy;
  }

  get setCacheHint(): (hint: CacheHint) => void {
    return (hint) => this.cacheHint.replace(hint);
  }

  get cacheHintFromType(): (type: GraphQLCompositeType) => CacheHint {
    return hintAnnotationOf;
  }

  get tag(): (...tags: string[]) => void {
    return (...tags) => {
      tags.forEach(assertTag);
      this.#execution?.addTags(tags);
    };
  }

  /** Returns the hint of the call when the execution has ended. */
  hint(hints: SchemaHints): CacheHint {
    return hints.hintOf(this.definition, this.isRoot, this.#policy);
  }
}

class FieldPolicy implements FieldCachePolicy {
  readonly #state: HintState;

  constructor(state: HintState) {
    this.#state = state;
  }

  get maxAge(): number | undefined {
    return this.#state.maxAge;
  }

  get sharedMaxAge(): number | undefined {
    return this.#state.sharedMaxAge;
  }

  get scope(): CacheScope | undefined {
    return this.#state.scope;
  }

  get vary(): readonly string[] | undefined {
    return this.#state.vary;
  }

  restrict(hint: CacheHint): void {
    assertHint(hint, 'info.cacheControl.cacheHint.restrict');
    restrictHint(this.#state, hint);
  }

  replace(hint: CacheHint): void {
    assertHint(hint, 'info.cacheControl.setCacheHint');
    replaceHint(this.#state, hint);
  }

  policyIfCacheable(): { readonly maxAge: number; readonly scope: CacheScope } | null {
    const { maxAge = 0, scope = 'PUBLIC' } = this.#state;
    return maxAge > 0 ? { maxAge, scope } : null;
  }
}

/** Tags are separated by spaces or commas in headers. */
function assertTag(tag: unknown): void {
  if (isString(tag) && /^[!#-+\--[\]-~]{1,256}$/.test(tag)) return;
  throw optionError(
    CACHING_OPTIONS,
    `info.cacheControl.tag: the tag is ${formatValue(tag)}; accepted: 1 to 256 visible ASCII characters without spaces, commas, quotes and backslashes`,
  );
}
