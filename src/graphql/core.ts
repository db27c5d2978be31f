import type { GraphQLError, GraphQLFormattedError, GraphQLSchema } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { GraphQLParams, PreparedOperation, Refusal } from './contract.ts';

/**
 * One schema with its options in force, independent of HTTP and of sockets: both run their operations through it, so that
 * a document validated over one is known over the other and context, limits and masking are written once.
 */
export interface GraphQLCore {
  /** The schema for this request or socket. */
  schemaFor(request: unknown): MaybePromise<GraphQLSchema>;
  /** Parses, limits, validates and compiles, or finds it done. Never throws for a client's mistake. */
  prepare(schema: GraphQLSchema, params: GraphQLParams): PreparedOperation | Refusal;
  /** The context value for a request (HTTP) or a WebSocket (sockets): a static one as given, a callable's answer. */
  contextFor(source: unknown): MaybePromise<unknown>;
  /** The root value for a request. */
  rootValueFor(source: unknown): unknown;
  /** Masked and clipped errors as clients see them. */
  formatErrors(errors: readonly GraphQLError[]): readonly GraphQLFormattedError[];
}

/** Where a `graphqlHTTP` handler keeps its core; registered, so that the CommonJS and the ES build agree. */
export const CORE: unique symbol = Symbol.for('espalier.core') as never;

/** The core of a `graphqlHTTP` handler, or undefined for anything else. */
export function coreOf(handler: unknown): GraphQLCore | undefined {
  return typeof handler === 'function' ? (handler as { [CORE]?: GraphQLCore })[CORE] : undefined;
}
