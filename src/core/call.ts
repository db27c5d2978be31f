import type { GraphQLSchema } from 'graphql';
import type { Caller } from '../../types/caller.ts';
import type { MaybePromise, OperationTransport } from '../../types/connect.ts';
import type { ObservedOperation } from '../execution/observed.ts';
import type {
  CallerAccess,
  ErrorOrigin,
  ExecutionCaching,
  ExecutionOutcome,
  GraphQLParams,
  IncrementalFormat,
  OperationCall,
  PreparedOperation,
  RequestError,
} from '../execution/types.ts';
import type { Exchange } from '../http/exchange.ts';
import type { FindCaller } from './caller.ts';
import type { GraphQLCore } from './core.ts';

/**
 * One operation, from its parameters to its result. It carries all that the steps of `run` know and is the input of its
 * own execution, so that an operation is a single object. Each transport extends it: the methods are the transport's
 * part in the steps, in their order.
 */
export abstract class Call implements OperationCall {
  params: GraphQLParams;
  /** Set while `espalier:graphql:operation` has subscribers. */
  observed: ObservedOperation | undefined;
  /** Set by the step of the context. */
  contextValue: unknown = undefined;
  /** What the option `caller` has returned: null for nobody, undefined without the option. */
  caller: Caller | null | undefined = undefined;
  /** What the caller may see; undefined if all callers see the same. */
  access: CallerAccess | undefined = undefined;
  /** The JSON text of the `extensions` to add to each result. */
  extensions: string | undefined = undefined;
  /** The cache policy of the execution; undefined if it has none. */
  caching: ExecutionCaching | undefined = undefined;
  /** The format of the payloads of an operation with deferred parts. */
  incremental: IncrementalFormat | undefined = undefined;
  /** Set before an execution that continues without its client. */
  outlivesClient = false;

  constructor(params: GraphQLParams, observed: ObservedOperation | undefined) {
    this.params = params;
    this.observed = observed;
  }

  abstract readonly core: GraphQLCore;
  abstract readonly transport: OperationTransport;
  /** The request or the WebSocket that functions of the application get. */
  abstract readonly source: unknown;
  abstract readonly rootValue: unknown;
  /** The origin of the operation, for reports of unexpected errors. */
  abstract get origin(): ErrorOrigin;
  /** Aborts when the client disconnects or cancels the operation. */
  abstract get signal(): AbortSignal | undefined;

  get variableValues(): Record<string, unknown> | undefined {
    return this.params.variables;
  }
  get index(): GraphQLParams['index'] {
    return this.params.index;
  }
  get connectionParams(): Readonly<Record<string, unknown>> | undefined {
    return undefined;
  }
  get exchange(): Exchange | undefined {
    return undefined;
  }
  get batch(): object | undefined {
    return undefined;
  }

  willExtend(): void {}

  expireBy(_time: number): void {}

  /** Whether a client may still receive the result. No step runs without one. */
  abstract isWanted(): boolean;

  /** Returns the caller; called only with the option `caller`. */
  findCaller(find: FindCaller): MaybePromise<Caller | null> {
    const { transport, connectionParams } = this;
    return find(this.source, { transport, connectionParams });
  }

  findSchema(): MaybePromise<GraphQLSchema> {
    return this.core.schemaFor(this.source, this);
  }

  /** Lets a prepared operation wait for earlier ones of the same client. */
  inTurn(
    prepared: MaybePromise<PreparedOperation | RequestError>,
  ): MaybePromise<PreparedOperation | RequestError> {
    return prepared;
  }

  /**
   * Returns why the transport refuses the operation.
   *
   * @throws HttpError if the refusal is the response to the whole request.
   */
  accept(_prepared: PreparedOperation): RequestError | undefined {
    return undefined;
  }

  createContext(caller: Caller | null | undefined = this.caller): MaybePromise<unknown> {
    const { transport, params: operation } = this;
    const response = this.exchange?.res;
    return this.core.contextFor(this.source, { transport, operation, caller, response });
  }

  /** Hands the operation over to another call: that of the stream in which its results are sent. False if this one goes on. */
  handOver(_prepared: PreparedOperation): boolean {
    return false;
  }

  /** Called before the checks of extensions, with the context. */
  start(_prepared: PreparedOperation): void {}

  execute(prepared: PreparedOperation): MaybePromise<ExecutionOutcome> {
    return prepared.execute(this);
  }

  /** Opens the source of a subscription. The call sends its results. */
  subscribe(_prepared: PreparedOperation): void {
    throw new TypeError('This transport delivers no events');
  }
}
