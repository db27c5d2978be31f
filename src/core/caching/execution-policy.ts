import type { GraphQLField } from 'graphql';
import type { CacheHint, CachePolicy } from '../../../types/caching.ts';
import type { ExecutionCaching } from '../../execution/caching.ts';
import { unattributedCalls } from '../../execution/guard/guarded-resolvers.ts';
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

/** How often a field was executed, and how often its resolver replaced its hint. */
interface FieldCalls {
  executed: number;
  replaced: number;
}

/** The cache policy of one execution: the static policy, changed by `info.cacheControl`. */
export class ExecutionPolicy implements ExecutionCaching {
  readonly #operation: OperationPolicy;
  readonly #variables: Record<string, unknown> | undefined;
  readonly #nested = new Map<Field, FieldCalls>();
  readonly #root = new Map<Field, FieldCalls>();
  #hinted: HintedCall[] | undefined;
  #restriction: HintState | undefined;
  #tags: Set<string> | undefined;
  /** Undefined unless the engine has to report fields. */
  #hasFields: boolean | undefined;
  readonly #unattributed = unattributedCalls();

  constructor(operation: OperationPolicy, variables: Record<string, unknown> | undefined) {
    this.#operation = operation;
    this.#variables = variables;
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

  /** Makes the policy of the whole result stricter. */
  restrict(hint: CacheHint): void {
    this.#restriction ??= emptyHint();
    restrictHint(this.#restriction, hint);
  }

  /** Returns the policy of the result, after the execution. */
  policy(): CachePolicy {
    if (this.#hasFields === false || this.#unattributed !== unattributedCalls()) return UNCACHEABLE;
    const isStatic = this.#hinted === undefined && this.#restriction === undefined;
    if (isStatic && this.#tags === undefined) return this.#operation.of(this.#variables);
    const tags = this.#tags === undefined ? [] : [...this.#tags];
    const policy = isStatic
      ? { ...this.#operation.of(this.#variables), tags }
      : toPolicy(this.#combine(), tags);
    return isCacheable(policy) ? policy : UNCACHEABLE;
  }

  /** Combines the hints of the resolvers with the static hints of all other fields. */
  #combine(): HintState {
    const combined = emptyHint();
    this.#operation.visitFields(this.#variables, ({ hint, definitions }, isRoot) => {
      if (definitions.length === 0) restrictHint(combined, hint);
      for (const definition of definitions) {
        if (!this.#isReplaced(definition, isRoot)) {
          restrictHint(combined, this.#operation.hints.hintOf(definition, isRoot));
        }
      }
    });
    for (const call of this.#hinted ?? []) restrictHint(combined, call.hint(this.#operation.hints));
    if (this.#restriction !== undefined) restrictHint(combined, this.#restriction);
    return combined;
  }

  /** Whether every execution of a field has a hint of its resolver, instead of the static one. */
  #isReplaced(definition: Field, isRoot: boolean): boolean {
    const calls = (isRoot ? this.#root : this.#nested).get(definition);
    return calls !== undefined && calls.replaced > 0 && calls.replaced >= calls.executed;
  }

  #callsOf(definition: Field, isRoot: boolean): FieldCalls {
    const all = isRoot ? this.#root : this.#nested;
    let calls = all.get(definition);
    if (calls === undefined) {
      calls = { executed: 0, replaced: 0 };
      all.set(definition, calls);
    }
    return calls;
  }
}
