import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { ExecutionResult, GraphQLError } from 'graphql';
import type { Caller } from '../../types/caller.ts';
import type { MaybePromise } from '../../types/connect.ts';
import type { Executed, ExecuteRequest } from '../../types/execute.ts';
import { type FindCaller, isCaller } from '../core/caller.ts';
import type { GraphQLCore } from '../core/core.ts';
import { events } from '../diagnostics/events.ts';
import { refuse } from '../execution/graphql-error.ts';
import { ObservedOperation } from '../execution/observed.ts';
import type { ErrorOrigin, GraphQLParams, PreparedOperation } from '../execution/types.ts';
import { MAX_DELAY, optionError, type Rules, resolveOptions, rule, unchecked } from '../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { isObject, isString } from '../options/values.ts';
import { LIVE_DEFAULTS, LiveEndpoint } from './endpoint.ts';
import { LiveOperation, runOperation } from './operation.ts';

const EXECUTE = { ...GRAPHQL_OPTIONS, name: 'execute', example: '{ query, variables }' };

const text = rule<string | undefined>(undefined, isString, 'a string');
const values = rule<Readonly<Record<string, unknown>> | undefined>(undefined, isObject, 'an object');
const rules: Rules<Required<ExecuteRequest>> = {
  query: text,
  documentId: text,
  operationName: text,
  variables: values,
  extensions: values,
  context: unchecked,
  caller: rule<Caller | null | undefined>(
    undefined,
    (value) => value === null || isCaller(value),
    'a caller such as { id: user.id }, or null for nobody',
  ),
  request: rule<IncomingMessage | undefined>(undefined, isObject, 'a request'),
  signal: rule<AbortSignal | undefined>(undefined, (value) => value instanceof AbortSignal, 'an AbortSignal'),
};

/** Creates the method `execute` of a handler: operations of the application itself, through all steps of an operation. */
export function createExecute(core: GraphQLCore): (request: ExecuteRequest) => Promise<Executed> {
  let endpoint: LiveEndpoint | undefined;
  return async (given) => {
    const request = resolveOptions(EXECUTE, given, rules);
    const params = paramsOf(request);
    if (request.caller !== undefined && core.findCaller === undefined)
      throw optionError(
        EXECUTE,
        'a caller needs the option "caller" of graphqlHTTP; without it nothing uses one',
      );
    request.signal?.throwIfAborted();
    endpoint ??= new LiveEndpoint(core, LIVE_DEFAULTS, 1000);
    return new DirectOperation(endpoint, params, request).results();
  };
}

/** @throws TypeError (code `ERR_OPTION`). */
function paramsOf({
  query,
  documentId,
  operationName,
  variables,
  extensions,
}: ExecuteRequest): GraphQLParams {
  if ((query === undefined) === (documentId === undefined))
    throw optionError(
      EXECUTE,
      'an operation needs one of "query", the text of a document, and "documentId"; pass execute({ query, variables })',
    );
  return {
    query: query ?? '',
    ...(documentId !== undefined && { document: { id: documentId, isPersistedQuery: false } }),
    operationName,
    variables: variables && { ...variables },
    extensions: extensions && { ...extensions },
  };
}

const expired = (): readonly GraphQLError[] => refuse('The token has expired', 'UNAUTHENTICATED', 401).errors;

const ignore = (): void => undefined;

/** An operation whose results the application itself gets. */
class DirectOperation extends LiveOperation {
  readonly id = undefined;
  readonly services: LiveEndpoint;
  readonly source: IncomingMessage;
  readonly #request: ExecuteRequest;
  /** Results of a subscription that were not read. */
  readonly #results: ExecutionResult[] = [];
  #resolve: (executed: Executed) => void = ignore;
  #forget: () => void = ignore;
  #isOpen = false;
  /** Continues with the iterator, when there are results. */
  #wake: () => void = ignore;
  /** Continues with the source, when the results are read. */
  #continue: () => void = ignore;
  #timer: NodeJS.Timeout | undefined;

  constructor(services: LiveEndpoint, params: GraphQLParams, request: ExecuteRequest) {
    const observed = events.operation.hasSubscribers
      ? new ObservedOperation({ transport: 'direct', ...(request.request && { request: request.request }) })
      : undefined;
    super(params, observed, undefined);
    this.services = services;
    const source: IncomingMessage & { state?: unknown } =
      request.request ?? new IncomingMessage(new Socket());
    source.state ??= {};
    this.source = source;
    this.#request = request;
  }

  /** There is one result: those of an engine that returns several would have no reader. */
  override get acceptsStreams(): boolean {
    return false;
  }
  get transport(): 'direct' {
    return 'direct';
  }
  get rootValue(): unknown {
    return this.core.rootValueFor(this.source);
  }
  get origin(): ErrorOrigin {
    const { contextValue, caller, isLive, source: request } = this;
    const { operationName } = this.params;
    const aborted = !isLive;
    return {
      transport: 'direct',
      operationName,
      request,
      socket: undefined,
      aborted,
      contextValue,
      caller,
    };
  }

  /** Starts the operation. Rejects only if the signal ends it. */
  results(): Promise<Executed> {
    const { signal } = this.#request;
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.cancel();
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#resolve = (executed) => {
        // The signal of a subscription may end it later.
        if (!this.#isOpen) this.#forget();
        resolve(executed);
      };
      this.#forget = () => signal?.removeEventListener('abort', onAbort);
      runOperation(this);
    });
  }

  override findCaller(find: FindCaller): MaybePromise<Caller | null> {
    const { caller } = this.#request;
    return caller === undefined ? super.findCaller(find) : caller;
  }

  override createContext(): MaybePromise<unknown> {
    const { context } = this.#request;
    return context === undefined ? super.createContext() : context;
  }

  /** There is one result: deferred parts are in it. */
  override start(_prepared: PreparedOperation): void {}

  override onOpen(): void {
    super.onOpen();
    this.#isOpen = true;
    const results = this.#read();
    // `return` of a generator waits for a pending `next`, and does nothing in one that has not begun.
    const end = results.return.bind(results);
    results.return = (value) => {
      this.cancel();
      this.#results.length = 0;
      return end(value);
    };
    this.#resolve(results);
  }

  send(body: string | Buffer): void {
    if (this.isLive) this.#push(JSON.parse(body.toString()));
  }

  complete(): void {
    this.release();
  }

  fail(errors: readonly GraphQLError[]): void {
    if (!this.isLive) return;
    this.observed?.fail(errors);
    this.#push({ errors: this.core.formatErrors(errors, this.origin) as readonly GraphQLError[] });
    this.release();
  }

  expireBy(time: number): void {
    clearTimeout(this.#timer);
    const end = (): void => (Date.now() < time ? this.expireBy(time) : this.fail(expired()));
    this.#timer = setTimeout(end, Math.min(time - Date.now(), MAX_DELAY)).unref();
  }

  protected waitForClient(): Promise<void> | undefined {
    if (this.#results.length === 0) return undefined;
    return new Promise((resolve) => {
      this.#continue = resolve;
    });
  }

  protected onRelease(): void {
    clearTimeout(this.#timer);
    this.#forget();
    this.#wake();
  }

  #push(result: ExecutionResult): void {
    if (!this.#isOpen) this.#resolve(result);
    else {
      this.#results.push(result);
      this.#wake();
    }
  }

  async *#read(): AsyncGenerator<ExecutionResult, void, undefined> {
    try {
      while (this.isLive || this.#results.length > 0) {
        const result = this.#results.shift();
        if (result !== undefined) yield result;
        else {
          this.#continue();
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } finally {
      this.cancel();
    }
  }
}
