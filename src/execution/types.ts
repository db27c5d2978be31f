// What the HTTP pipeline, the sockets and the engines have in common: plain values, no framework.
import type {
  DocumentNode,
  GraphQLError,
  GraphQLFormattedError,
  GraphQLSchema,
  OperationDefinitionNode,
} from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';

/** The parameters of a GraphQL request after their types were checked (GraphQL over HTTP, "Request Parameters"). */
export interface GraphQLParams {
  query: string;
  operationName: string | undefined;
  variables: Record<string, unknown> | undefined;
  extensions: Record<string, unknown> | undefined;
}

/** One operation of a document that passed parsing, limits and validation. Lives in the document cache. */
export interface PreparedOperation {
  readonly schema: GraphQLSchema;
  /** The source text the document was parsed from. */
  readonly source: string;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  /** Executes it; the engine in force chose how, once, when the operation was prepared. */
  readonly run: Run;
  /** What the operation comes to, measured before validation; operations of one batch share the limits. */
  readonly cost?: { readonly fields: number; readonly rootFields: number };
}

/** Why a request cannot be executed: parsing, a limit, validation, or no such operation. */
export interface RequestError {
  readonly errors: readonly GraphQLError[];
  /** Status for strict media types; 400 unless the limit says otherwise (413). */
  readonly status: number;
  /** The text is no GraphQL document at all; the newest draft tells that from what is merely not valid. */
  readonly unparsable?: boolean;
  /** A limit of this server: its status holds for every media type. */
  readonly limit?: boolean;
}

/** What one execution is given. Variables are as received, not coerced. */
export interface ExecutionInputs {
  rootValue: unknown;
  contextValue: unknown;
  variableValues: Record<string, unknown> | undefined;
  /** Fires when the client has gone. */
  signal?: AbortSignal | undefined;
}

/** What an execution came to, as the JSON text of the GraphQL response. */
export interface ExecutionOutcome {
  /** `data`: no errors. `partial`: errors beside a `data` member (null included). `refused`: a request error, no `data` member. */
  readonly kind: 'data' | 'partial' | 'refused';
  /** The response map `{"errors":…,"data":…}`: text, or UTF-8 bytes that nobody else will touch before `release` is called. */
  readonly body: string | Buffer;
  /** Gives the bytes of a long answer back to be written over. Nobody has to call it; who does was their only reader, and calls once. */
  readonly release?: (() => void) | undefined;
  /** The errors before masking; empty when there were none. Made when they are first read, where nothing asked for them. */
  readonly errors: readonly GraphQLError[];
  /** No error has extensions: none asks for a status or for headers, and `errors` need not be read for them. */
  readonly isBare?: boolean;
}

/** Executes one prepared operation; synchronous when every resolver was. Field errors are in the outcome; it never throws for them. */
export type Run = (inputs: ExecutionInputs) => MaybePromise<ExecutionOutcome>;

/** How a prepared operation gets its `run`: graphql-js, the compiled engine, or a user's function. */
export type Engine = (operation: Omit<PreparedOperation, 'run'>, settings: EngineSettings) => Run;

/** What of the options an engine needs. */
export interface EngineSettings {
  fieldResolver: unknown;
  typeResolver: unknown;
  /** Errors after which the coercion of variables stops. */
  maxErrors: number;
  /** Leaves "Did you mean …?" out of messages. */
  hideSuggestions: boolean;
  /** What is told of errors that were not written for clients; undefined when `formatErrors` has to see each one. */
  maskedMessage?: string | undefined;
  /** Masks, clips and formats the errors of one response, in order. */
  formatErrors(errors: readonly GraphQLError[]): readonly GraphQLFormattedError[];
}
