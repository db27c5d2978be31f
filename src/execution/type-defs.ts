// The texts are public, so the declarations of this file are part of the package: it stays apart from the rest.

/** The definition of `@rateLimit`, which the option `clientLimits` enforces. */
export const rateLimitTypeDefs = `directive @rateLimit(
  limit: Int!
  window: String = "1m"
  "What is counted: CALLER, ADDRESS, or the path of an argument."
  by: String = "CALLER"
) repeatable on FIELD_DEFINITION
`;

/** The definitions of `@cacheControl` and `@cacheTag`, for the options `httpCache` and `responseCache`. */
export const cacheTypeDefs = `enum CacheControlScope { PUBLIC PRIVATE }
directive @cacheControl(
  maxAge: Int
  sharedMaxAge: Int
  scope: CacheControlScope
  vary: [String!]
  inheritMaxAge: Boolean
) on FIELD_DEFINITION | OBJECT | INTERFACE | UNION
directive @cacheTag(format: String!) repeatable on FIELD_DEFINITION | OBJECT | INTERFACE
`;
