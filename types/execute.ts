import type { IncomingMessage } from 'node:http';
import type { ExecutionResult } from 'graphql';
import type { Caller } from './caller.ts';

/** An operation that the application itself executes. One of `query` and `documentId` is required. */
export interface ExecuteRequest<Context = unknown, C extends Caller = Caller> {
  /** The text of the document. */
  readonly query?: string | undefined;
  /** The id of a document of the option `documents`. */
  readonly documentId?: string | undefined;
  /** The operation of a document with several. @default the only one */
  readonly operationName?: string | undefined;
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
  /** The context of resolvers. @default what the option `context` returns */
  readonly context?: Context | undefined;
  /** Who executes the operation, for a handler with the option `caller`; null: nobody is signed in. @default what that option returns */
  readonly caller?: C | null | undefined;
  /** The request that functions of the options get. @default one without headers, with an empty `state` */
  readonly request?: IncomingMessage | undefined;
  /** Ends the operation and rejects its promise, or ends the iterator of a subscription. */
  readonly signal?: AbortSignal | undefined;
}

/** The result of `execute`; for a subscription an iterator of its results, which `return()` ends. */
export type Executed = ExecutionResult | AsyncGenerator<ExecutionResult, void, undefined>;
