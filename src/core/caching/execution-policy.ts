import type { GraphQLField } from 'graphql';
import type { CacheHint, CachePolicy } from '../../../types/caching.ts';
import type { GuardedStore } from '../../cache/guarded-store.ts';
import { ALL_TAGS } from '../../cache/tags/tags.ts';
import { unattributedCalls } from '../../execution/guard/guarded-resolvers.ts';
import type { ExecutionCaching, ObjectTags } from '../../execution/types.ts';
import { emptyHint, type HintState, restrictHint } from './hints.ts';
import { isCacheable, type OperationPolicy, toPolicy, UNCACHEABLE } from './operation-policy.ts';
import type { SchemaHints } from './schema-hints.ts';

type Field = GraphQLField<unknown, unknown>;

/** A call of a resolver that has read or changed the hint of its field. */
export interface HintedCall {
  readonly definition: Field;
  readonly isRoot: boolean;
  /** Returns the hint of the call when the execution has ended. */
  hint(hints: SchemaHints): CacheHint;
}

/** The number of executions of a field, and of those whose resolver replaced its hint. */
interface FieldCalls {
  executed: number;
  replaced: number;
}

/** The cache policy of one execution: the static policy, changed by `info.cacheControl`. */
export class ExecutionPolicy implements ExecutionCaching {
  readonly #operation: OperationPolicy;
  readonly #variables: Record<string, unknown> | undefined;
  /** Created for the first field that is counted. */
  #nested: Map<Field, FieldCalls> | undefined;
  #root: Map<Field, FieldCalls> | undefined;
  #hinted: HintedCall[] | undefined;
  #restriction: HintState | undefined;
  #tags: Set<string> | undefined;
  /** The object whose tags were added last: its fields are executed one after the other. */
  #lastObject: unknown;
  #lastTags: ObjectTags | undefined;
  /** An object has no value for one of its tags. */
  #lacksTag = false;
  readonly #store: GuardedStore | undefined;
  /** Undefined unless the engine has to report fields. */
  #hasFields: boolean | undefined;
  readonly #unattributed = unattributedCalls();

  constructor(
    operation: OperationPolicy,
    variables: Record<string, unknown> | undefined,
    store: GuardedStore | undefined,
  ) {
    this.#operation = operation;
    this.#variables = variables;
    this.#store = store;
  }

  count(definition: Field, isRoot: boolean): void {
    this.#callsOf(definition, isRoot).executed += 1;
    if (this.#hasFields === false) this.#hasFields = true;
  }

  expectFields(): void {
    this.#hasFields ??= false;
  }

  addHintedCall(call: HintedCall): void {
    this.#hinted ??= [];
    this.#hinted.push(call);
    this.#callsOf(call.definition, call.isRoot).replaced += 1;
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
        if (!this.#isReplaced(definition, isRoot)) {
          restrictHint(combined, this.#operation.hints.hintOf(definition, isRoot ? 'root' : 'nested'));
        }
      }
    });
    for (const call of this.#hinted ?? []) restrictHint(combined, call.hint(this.#operation.hints));
    if (this.#restriction !== undefined) restrictHint(combined, this.#restriction);
    return combined;
  }

  /** Whether every execution of a field has a hint of its resolver, instead of the static one. */
  #isReplaced(definition: Field, isRoot: boolean): boolean {
    const calls = (isRoot ? this.#root : this.#nested)?.get(definition);
    return calls !== undefined && calls.replaced > 0 && calls.replaced >= calls.executed;
  }

  #callsOf(definition: Field, isRoot: boolean): FieldCalls {
    if (isRoot) this.#root ??= new Map();
    else this.#nested ??= new Map();
    const all = (isRoot ? this.#root : this.#nested) as Map<Field, FieldCalls>;
    let calls = all.get(definition);
    if (calls === undefined) {
      calls = { executed: 0, replaced: 0 };
      all.set(definition, calls);
    }
    return calls;
  }
}
