import type { IncomingMessage } from 'node:http';
import type {
  ErrorOrigin,
  ExecutionCaching,
  ExecutionInputs,
  GraphQLParams,
  IncrementalFormat,
} from '../execution/types.ts';
import { isAborted } from '../http/reply.ts';
import type { Exchange } from './exchange.ts';

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
