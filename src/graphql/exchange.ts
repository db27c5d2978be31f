import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CachePolicy } from '../../types/caching.ts';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import type {
  ErrorOrigin,
  ExecutionCaching,
  ExecutionInputs,
  ExecutionOutcome,
  GraphQLParams,
  IncrementalFormat,
  RequestError,
} from '../execution/types.ts';
import type { Negotiated } from '../http/negotiation.ts';
import { isAborted } from '../http/reply.ts';

/** One request with its response and the state of its processing. */
export interface Exchange {
  readonly req: ConnectRequest;
  readonly res: ServerResponse;
  /** The `next` function; undefined in a bare `node:http` server. */
  readonly next: NextFunction | undefined;
  /** The media types of a GraphQL response that the client accepts. */
  readonly accepted: Negotiated;
  /** The time of the request (`performance.now()`); 0 if the response channel has no subscriber. */
  readonly started: number;
  /** The name of the operation that is executed, for reports of errors. */
  operationName: string | undefined;
  /** The cost of the batch; undefined for a single operation. */
  batchCost: BatchCost | undefined;
  /** Whether an error of one operation is the response of its batch: the results of the others are not sent. */
  isAbandoned: boolean;
  /** The caching of the result; undefined if caching is off, and for batches. */
  caching: ResultCaching | undefined;
  /** The return value of the option `cache.key`: null if the result is not stored; undefined without the option. */
  userKey: string | null | undefined;
  /** The tags that the mutations of the request have invalidated. */
  invalidatedTags: readonly string[] | undefined;
}

/** The data that the caching headers of a result depend on. */
export interface ResultCaching {
  policy(): CachePolicy;
  /** Returns the strong ETag of a body, if it is known, or creates it. */
  etagOf?(body: string | Buffer, create: () => string): string;
  /** Seconds since the result was created, for one that is stored. */
  readonly age?: number | undefined;
}

/** The result of a request whose response has begun, because it is a stream. */
export const STREAMED: unique symbol = Symbol('streamed');

/** The result of one operation. */
export type Result = ExecutionOutcome | RequestError | typeof STREAMED;

/** The cost of the operations of one batch so far. Together they have the limits of one operation. */
interface BatchCost {
  fields: number;
  rootFields: number;
  /** The cost by the option `cost`. */
  price: number;
}

/** The inputs and the origin of one execution. The signal is created when it is first read. */
export class RequestInputs implements ExecutionInputs, ErrorOrigin {
  readonly transport = 'http';
  readonly socket = undefined;
  readonly request: IncomingMessage;
  readonly operationName: string | undefined;
  readonly rootValue: unknown;
  readonly contextValue: unknown;
  readonly variableValues: Record<string, unknown> | undefined;
  /** The extensions of the request. */
  readonly extensions: Record<string, unknown> | undefined;
  /** Set before the execution if the client accepts an incremental response. */
  incremental: IncrementalFormat | undefined;
  /** Set before the execution if caching is on. */
  caching: ExecutionCaching | undefined;
  /** Set before the execution if it continues when the client disconnects. */
  outlivesClient = false;
  readonly #exchange: Exchange;
  #controller: AbortController | undefined;

  constructor(
    exchange: Exchange,
    operationName: string | undefined,
    { variables, extensions }: Pick<GraphQLParams, 'variables' | 'extensions'>,
    contextValue: unknown,
    rootValue: unknown,
  ) {
    this.request = exchange.req;
    this.operationName = operationName;
    this.rootValue = rootValue;
    this.contextValue = contextValue;
    this.variableValues = variables;
    this.extensions = extensions;
    this.#exchange = exchange;
  }

  get origin(): ErrorOrigin {
    return this;
  }

  get aborted(): boolean {
    // The signal may not exist: graphql 16 never reads it.
    return hasNoReceiver(this.#exchange);
  }

  get signal(): AbortSignal | undefined {
    if (this.outlivesClient) return undefined;
    const exchange = this.#exchange;
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      const onClose = (): void => {
        if (!exchange.res.writableFinished || exchange.isAbandoned) controller.abort();
      };
      if (hasNoReceiver(exchange)) onClose();
      else exchange.res.once('close', onClose);
    }
    return this.#controller.signal;
  }
}

/** Whether no client can receive the result of an operation. */
export const hasNoReceiver = ({ res, isAbandoned }: Exchange): boolean => isAbandoned || isAborted(res);

/** The request that an error belongs to. */
export const originOf = ({ req, operationName }: Exchange): ErrorOrigin => ({
  transport: 'http',
  operationName,
  request: req,
  socket: undefined,
});
