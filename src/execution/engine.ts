// The signature and the settings of all engines.
import type { GraphQLError, GraphQLFormattedError, SourceLocation } from 'graphql';
import type { Caching } from './caching.ts';
import type { ErrorOrigin, ExecuteOperation, IncrementalFormat, Price, ValidatedOperation } from './types.ts';

/** Counts the memory of one operation against the budget of the document cache. */
export interface MemoryAccount {
  /**
   * Adds bytes that the operation retains from now on. Returns false if they are more than one operation may
   * have: the operation should release them.
   */
  charge(bytes: number): boolean;
}

/**
 * Creates the function that executes an operation: with graphql-js, the compiled engine, or a user's
 * function. Without `account` the memory of the operation is not limited.
 */
export type Engine = (
  operation: ValidatedOperation,
  settings: EngineSettings,
  account?: MemoryAccount,
) => ExecuteOperation;

/**
 * Creates the function that executes an operation with deferred parts: the first payload is the outcome, the
 * others are its `rest`.
 */
export type IncrementalEngine = (
  operation: ValidatedOperation,
  settings: EngineSettings,
  format: IncrementalFormat,
  account?: MemoryAccount,
) => ExecuteOperation;

/** The settings that engines need. */
export interface EngineSettings {
  fieldResolver: unknown;
  typeResolver: unknown;
  /** The coercion of variables stops after this many errors. */
  maxErrors: number;
  /** Omits "Did you mean ...?" from messages. */
  hideSuggestions: boolean;
  /** Compiles the cost of an operation; undefined without the options `cost` and `budget`. */
  price?: ((operation: ValidatedOperation, account: MemoryAccount) => Price) | undefined;
  /** The cache policies; undefined if caching is off. */
  caching?: Caching | undefined;
  /** Masks and formats the errors of one response, in order, and reports unexpected errors. */
  formatErrors(errors: readonly GraphQLError[], origin?: ErrorOrigin): readonly GraphQLFormattedError[];
  /**
   * Like `formatErrors`, for an error that a resolver threw and that has no properties of a GraphQLError: no
   * GraphQLError is created for it. Undefined if the format of such errors depends on more than the
   * arguments.
   */
  readonly maskError?:
    | ((error: Error, place: ErrorPlace, origin?: ErrorOrigin) => GraphQLFormattedError)
    | undefined;
}

/** The place of a field error, as the response contains it. */
interface ErrorPlace {
  readonly locations: readonly SourceLocation[] | undefined;
  readonly path: readonly (string | number)[];
}
