/** Limits of one document, checked once per document, before validation. `Infinity` means no limit. */
export interface DocumentLimits {
  /** Lexical tokens. @default 5000 */
  tokens?: number | undefined;
  /** Characters of a document; its lines are limited to a twentieth of this number. @default 100000 */
  characters?: number | undefined;
  /**
   * Levels of nested fields, fragments counted where they are spread; introspection has its own limit.
   * @default 50
   */
  depth?: number | undefined;
  /** Fields of one operation, fragments counted at each spread. @default 10000 */
  fields?: number | undefined;
  /** Fields at the root of one operation. @default 100 */
  rootFields?: number | undefined;
  /** Aliases in one operation, fragments counted at each spread. @default 1000 */
  aliases?: number | undefined;
  /** Directives in one operation, fragments counted at each spread. @default 200 */
  directives?: number | undefined;
  /** Fragments of one document. @default 500 */
  fragments?: number | undefined;
  /**
   * Pairs of fields with the same name in the same place, fragments included: validation compares each pair.
   * @default 20000
   */
  merges?: number | undefined;
  /** Errors after which validation and coercion stop; all errors of resolvers are reported. @default 10 */
  errors?: number | undefined;
  /** Values in the variables of one request, lists and objects counted by their members. @default 20000 */
  variables?: number | undefined;
}

/** The limits of a request over HTTP. */
export interface GraphQLLimits extends DocumentLimits {
  /** Bytes of a JSON body, counted after decompression; more is 413. @default 1048576 */
  bodyBytes?: number | undefined;
  /** Milliseconds until a body is complete; then 408. @default 30000 */
  bodyTimeout?: number | undefined;
  /** Operations in one batch; more is 413. @default 10 */
  batch?: number | undefined;
}
