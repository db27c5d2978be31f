import type { GraphQLCompositeType, GraphQLResolveInfo } from 'graphql';

/** The users that may share a cached result: all, or only the user that received it. */
export type CacheScope = 'PUBLIC' | 'PRIVATE';

/** The time for which the value of a field may be cached, and for whom. Missing members change nothing. */
export interface CacheHint {
  /** Seconds that the value stays fresh. 0: not cacheable. */
  readonly maxAge?: number | undefined;
  /** Seconds that the value stays fresh in shared caches such as CDNs. @default maxAge */
  readonly sharedMaxAge?: number | undefined;
  /** @default 'PUBLIC' */
  readonly scope?: CacheScope | undefined;
  /** Names of request headers that the value depends on. */
  readonly vary?: readonly string[] | undefined;
}

/** The policy of a whole result. It is cacheable if one of the two lifetimes is greater than 0. */
export interface CachePolicy {
  /** Seconds that the result stays fresh. */
  readonly maxAge: number;
  /** Seconds that the result stays fresh in shared caches. */
  readonly sharedMaxAge: number;
  readonly scope: CacheScope;
  /** Names of request headers that the result depends on, in lower case. */
  readonly vary: readonly string[];
  /** The tags that invalidate the result. */
  readonly tags: readonly string[];
}

/** The hint of one field while it is executed: the hint of the schema, changed by the resolver. */
export interface FieldCachePolicy {
  readonly maxAge: number | undefined;
  readonly sharedMaxAge: number | undefined;
  readonly scope: CacheScope | undefined;
  readonly vary: readonly string[] | undefined;
  /** Makes the policy stricter: the lower lifetimes and `PRIVATE` win, and the names of `vary` are added. */
  restrict(hint: CacheHint): void;
  /** Replaces the members that `hint` has. */
  replace(hint: CacheHint): void;
  /** Returns the lifetime and scope, or null if the field has no lifetime greater than 0. */
  policyIfCacheable(): { readonly maxAge: number; readonly scope: CacheScope } | null;
}

/** `info.cacheControl` of a resolver. Its functions throw a TypeError (code `ERR_OPTION`) for wrong values. */
export interface CacheControl {
  /** Replaces members of the field's hint. */
  readonly setCacheHint: (hint: CacheHint) => void;
  /** The field's hint, to read or to restrict. */
  readonly cacheHint: FieldCachePolicy;
  /** Returns the hint of a type, for fields of an abstract type whose object type the resolver knows. */
  readonly cacheHintFromType: (type: GraphQLCompositeType) => CacheHint;
  /** Adds tags to the result. Tags are visible ASCII characters without spaces, commas and quotes. */
  readonly tag: (...tags: string[]) => void;
}

/** The `info` argument of resolvers when the option `httpCache` is on. */
export type CacheControlInfo = GraphQLResolveInfo & { readonly cacheControl: CacheControl };

/** The option `httpCache` of `graphqlHTTP`. */
export interface CacheControlOptions {
  /** Seconds, or a time such as `'5m'`, for root fields and fields of object types that have no hint. @default 0, not cacheable */
  defaultMaxAge?: number | string | undefined;
  /**
   * Where responses list the tags of their result, for purges: in the header `Cache-Tag` (Cloudflare, Akamai; separated by
   * commas), `Surrogate-Key` (Fastly) or `xkey` (Varnish; both by spaces). `'extensions'`: in `extensions.apolloCacheTags`,
   * which Apollo Router reads for the root fields of a subgraph.
   * @default false, nowhere
   */
  tags?: false | 'Cache-Tag' | 'Surrogate-Key' | 'xkey' | 'extensions' | undefined;
}
