import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ExecutionCaching } from '../execution/caching.ts';
import type { ErrorOrigin, ExecutionInputs, GraphQLParams, IncrementalFormat } from '../execution/types.ts';
import { isAborted } from '../http/reply/response-state.ts';
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
  readonly #res: ServerResponse;
  #controller: AbortController | undefined;

  constructor(
    { req, res }: Exchange,
    operationName: string | undefined,
    { variables, extensions }: Pick<GraphQLParams, 'variables' | 'extensions'>,
    contextValue: unknown,
    rootValue: unknown,
  ) {
    this.request = req;
    this.operationName = operationName;
    this.rootValue = rootValue;
    this.contextValue = contextValue;
    this.variableValues = variables;
    this.extensions = extensions;
    this.#res = res;
  }

  get origin(): ErrorOrigin {
    return this;
  }

  get aborted(): boolean {
    // The signal may not exist: graphql 16 never reads it.
    return isAborted(this.#res);
  }

  get signal(): AbortSignal | undefined {
    if (this.outlivesClient) return undefined;
    const res = this.#res;
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      const onClose = (): void => {
        if (!res.writableFinished) controller.abort();
      };
      if (isAborted(res)) onClose();
      else res.once('close', onClose);
    }
    return this.#controller.signal;
  }
}
