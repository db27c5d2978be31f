import type { CachePolicy } from '../../../types/caching.ts';
import { normalTag } from '../../cache/tags/tags.ts';
import { isCacheable } from '../../core/caching/operation-policy.ts';
import { assertSync, isListOf, isString, wrongReturnValue } from '../../options/rules.ts';
import { CACHE_OPTIONS } from '../../options/scopes.ts';
import type { ResultCaching } from '../exchange.ts';
import type { ResponseCacheSettings } from './options.ts';

const isTags = isListOf(isString);

/** The caching of a result with the tags of the option `tags`, for its entry and for its headers. */
class TaggedCaching implements ResultCaching {
  readonly #caching: ResultCaching;
  readonly #readTags: () => unknown;
  #tags: readonly string[] | undefined;

  constructor(caching: ResultCaching, readTags: () => unknown) {
    this.#caching = caching;
    this.#readTags = readTags;
  }

  policy(): CachePolicy {
    const policy = this.#caching.policy();
    if (!isCacheable(policy)) return policy;
    this.#tags ??= toTags(this.#readTags());
    return { ...policy, tags: [...new Set([...policy.tags, ...this.#tags])] };
  }
}

function toTags(returned: unknown): readonly string[] {
  const list = assertSync(returned, CACHE_OPTIONS, 'tags');
  if (!isTags(list)) throw wrongReturnValue(CACHE_OPTIONS, 'tags', list, 'a list of tags');
  return list.map(String).filter(Boolean).map(normalTag);
}

/** Adds the tags of the option `tags` to the caching of a query; returns it unchanged without the option. */
export function withOptionTags<T extends ResultCaching>(
  { tags }: Pick<ResponseCacheSettings, 'tags'>,
  caching: T | undefined,
  { request, contextValue }: { readonly request: unknown; readonly contextValue: unknown },
): T | ResultCaching | undefined {
  if (tags === undefined || caching === undefined) return caching;
  return new TaggedCaching(caching, () => tags(request, contextValue));
}
