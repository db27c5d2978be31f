import type { GraphQLCompositeType, GraphQLField } from 'graphql';
import type { CacheControl, CacheHint, CacheScope, FieldCachePolicy } from '../../../types/caching.ts';
import { formatValue, isString, optionError } from '../../options/rules.ts';
import { CACHING_OPTIONS } from '../../options/scopes.ts';
import { hintAnnotationOf } from './annotations.ts';
import type { ExecutionPolicy, HintedCall } from './execution-policy.ts';
import { assertHint, type HintState, replaceHint, restrictHint } from './hints.ts';
import { type SchemaHints, staticHint } from './schema-hints.ts';

type Field = GraphQLField<unknown, unknown>;

/**
 * `info.cacheControl` of one call of a resolver. Its members are getters, so that a call of a resolver that
 * does not use it creates one object, and so that resolvers may destructure it.
 */
export class FieldControl implements CacheControl, HintedCall {
  readonly definition: Field;
  readonly isRoot: boolean;
  readonly #execution: ExecutionPolicy | undefined;
  #policy: FieldPolicy | undefined;

  constructor(execution: ExecutionPolicy | undefined, definition: Field, isRoot: boolean) {
    this.#execution = execution;
    this.definition = definition;
    this.isRoot = isRoot;
  }

  get cacheHint(): FieldCachePolicy {
    if (this.#policy === undefined) {
      this.#policy = new FieldPolicy(staticHint(this.definition).state);
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

  hint(hints: SchemaHints): CacheHint {
    const { state: initial, inheritMaxAge } = staticHint(this.definition);
    const state = this.#policy?.state() ?? initial;
    hints.addDefault(state, this.definition, { isRoot: this.isRoot, inheritMaxAge });
    return state;
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

  state(): HintState {
    return { ...this.#state };
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

/** Tags are separated by spaces or commas in headers, and quoted in `Cache-Groups` (RFC 9875). */
function assertTag(tag: unknown): void {
  if (isString(tag) && /^[!#-+\--[\]-~]{1,256}$/.test(tag)) return;
  throw optionError(
    CACHING_OPTIONS,
    `info.cacheControl.tag: the tag is ${formatValue(tag)}; accepted: 1 to 256 visible ASCII characters without spaces, commas, quotes and backslashes`,
  );
}
