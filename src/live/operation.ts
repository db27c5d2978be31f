import type { GraphQLError } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { Access } from '../auth/access.ts';
import { invalidateRest } from '../cache/policy.ts';
import { type OperationHook, withExtensions } from '../core/admission.ts';
import type { GraphQLCore } from '../core/core.ts';
import { assertVariableLimits } from '../core/limits.ts';
import { events } from '../diagnostics/events.ts';
import { inTime } from '../execution/deadline.ts';
import { refusalError, toGraphQLError } from '../execution/graphql-error.ts';
import { type ObservedOperation, observedOf } from '../execution/observed.ts';
import {
  type ErrorOrigin,
  type ExecutionCaching,
  type ExecutionInputs,
  type ExecutionOutcome,
  type GraphQLParams,
  type IncrementalFormat,
  isThenable,
  type PreparedOperation,
  type RemainingResults,
  type RequestError,
} from '../execution/types.ts';
import { HttpError } from '../http/reply.ts';
import { caught, settle } from '../options/rules.ts';
import type { SocketOperation } from './connection.ts';
import { type CursorRequest, type CursorSettings, OperationCursors } from './cursors.ts';
import {
  identityOf,
  type ShareFunction,
  type ShareKey,
  type SubscriptionGroups,
  shareKeyOf,
} from './groups.ts';
import type { FlushMode } from './queue.ts';
import {
  consumeSource,
  type EventConsumer,
  LoopSteps,
  returnIterator,
  type SourceCounters,
} from './source.ts';

/**
 * One operation in progress. A transport extends it to send messages to the client. The operation is also the
 * input of the execution and the consumer of the source, so that an idle subscription is a single object.
 */
export abstract class LiveOperation implements ExecutionInputs, EventConsumer {
  readonly params: GraphQLParams;
  abstract readonly rootValue: unknown;
  /** The request or the WebSocket, for the option `onOperation`. */
  abstract readonly source: unknown;
  /** Set before the operation is executed. */
  contextValue: unknown;
  /** The JSON text of the `extensions` to add to each result. */
  extensions: string | undefined;
  /** Set while `espalier:graphql:operation` has subscribers. */
  observed: ObservedOperation | undefined;
  /** The format of the payloads of an operation with deferred parts. */
  incremental: IncrementalFormat | undefined;
  /** What the caller may see; undefined without the option `auth`. */
  access: Access | undefined;
  /** Set before a mutation with an idempotency key, which continues without its client. */
  outlivesClient?: boolean;
  /** Invalidates the response cache after a mutation; undefined without a cache. */
  caching: ExecutionCaching | undefined;
  /** False as soon as no more messages may be sent for the operation. */
  isLive = true;
  /** Whether the operation's events may be dropped when the client is slow. */
  droppable = false;
  /** Whether the source waits for a slow client; otherwise the slow client is closed. */
  appliesBackpressure = false;
  /** Releases the source, or leaves the group. */
  releaseSource: (() => void) | undefined;
  /** Undefined if the client did not ask for cursors. */
  readonly cursorRequest: CursorRequest | undefined;
  /** The cursors of the source, or of the group; undefined if the option `cursors` is not set. */
  cursors: OperationCursors | undefined;
  /** The cursor in the last message without data. */
  #sentPosition: string | undefined;
  #abortController: AbortController | undefined;

  constructor(params: GraphQLParams, cursorRequest: CursorRequest | undefined) {
    this.params = params;
    this.cursorRequest = cursorRequest;
  }

  /** Sends one serialised result. `cursor` is its signed cursor, which the result contains too. */
  abstract send(body: string | Buffer, mode: FlushMode, cursor?: string): void;
  /** Ends the operation after its last result. */
  abstract complete(): void;
  /** Ends the operation with errors that are not masked yet. */
  abstract fail(errors: readonly GraphQLError[]): void;
  /** Resolves when the client has read something; undefined when it is not slow. */
  protected abstract waitForClient(): Promise<void> | undefined;
  /** Ends the connection of the operation at a time, in milliseconds since 1970. */
  abstract expireBy(time: number): void;
  /** Frees the operation's id. */
  protected abstract onRelease(): void;

  /** The origin of the operation, for reports of unexpected errors. */
  abstract get origin(): ErrorOrigin;

  /** The client's id; undefined if the stream has one operation only. */
  abstract readonly id: unknown;

  get inputs(): ExecutionInputs {
    return this;
  }
  get contextForEvent(): (() => MaybePromise<unknown>) | undefined {
    return undefined;
  }
  /** Checks the caller of an event before it is executed; undefined unless the context is per event. */
  authorizeEvent: EventConsumer['authorizeEvent'];
  get acceptsStreams(): boolean {
    return true;
  }
  get variableValues(): Record<string, unknown> | undefined {
    return this.params.variables;
  }
  /**
   * Created when the engine or a source reads it. Undefined for a mutation whose tags have to be invalidated, which
   * continues without its client.
   */
  get signal(): AbortSignal | undefined {
    if (this.caching !== undefined || this.outlivesClient === true) return undefined;
    if (this.#abortController === undefined) {
      this.#abortController = new AbortController();
      if (!this.isLive) this.#abortController.abort();
    }
    return this.#abortController.signal;
  }

  onOpen(): void {
    if (events.subscribe.hasSubscribers) events.subscribe.publish({ origin: this.origin, id: this.id });
    this.observed?.subscribed();
  }

  /** Sends the result of one event of a private source. */
  onResult({ body }: ExecutionOutcome, cursor?: string): void {
    this.send(body, 'batched', cursor);
  }

  isWanted(): boolean {
    return this.isLive;
  }

  waitForDrain(): Promise<void> | undefined {
    return this.appliesBackpressure ? this.waitForClient() : undefined;
  }

  /** Sets the function that releases the source. Calls it immediately if the client has disconnected. */
  setSource(release: () => void): void {
    if (this.isLive) this.releaseSource = release;
    else release();
  }

  abort(): void {
    this.#abortController?.abort();
  }

  /** Sends the first cursor to a client that has none, so that it can continue before its first event. */
  onStarted(): void {
    if (this.cursors?.after === undefined) this.#sendPosition(this.cursors?.cursor);
  }

  /** Sends the cursor if it has changed since the last message, because a filter has left out events. */
  sendPosition(): void {
    const { cursors } = this;
    if (cursors === undefined || cursors.cursor === cursors.delivered) return;
    if (cursors.cursor !== this.#sentPosition) this.#sendPosition(cursors.cursor);
  }

  #sendPosition(cursor: string | undefined): void {
    if (cursor === undefined || !this.isLive) return;
    this.#sentPosition = cursor;
    const signed = this.cursors?.sign(cursor) as string;
    if (this.cursorRequest?.wantsPositions !== true) this.sendCursor(signed);
    else this.send(`{"data":null,"extensions":{"cursor":"${signed}"}}`, 'batched', signed);
  }

  /** Sends a cursor without a result, if the protocol has such a message. */
  protected sendCursor(_cursor: string): void {}

  /** Calls `respond` after a mutation: immediately, or when the stored results of its tags are removed. */
  afterInvalidation(respond: () => void): MaybePromise<void> {
    return settle(this.caching?.invalidate(), respond);
  }

  /** Stops the operation without a message, because the client cancelled it or disconnected. */
  cancel(): void {
    if (!this.isLive) return;
    // With a source, the operation aborts when its iterator is returned.
    if (this.releaseSource === undefined) this.abort();
    this.release();
  }

  /** Frees the id and the source. No more messages are sent for the operation. */
  release(): void {
    if (!this.isLive) return;
    this.isLive = false;
    this.observed?.end();
    this.onRelease();
    this.releaseSource?.();
    this.releaseSource = undefined;
  }
}

/**
 * Starts an operation of a socket: sends a single result, opens a private source stream, or joins a group. A long new
 * document is prepared asynchronously; later operations of the same client are executed after it, in order.
 */
export function startOperation(operation: SocketOperation, services: OperationServices): void {
  const { client } = operation;
  const { core } = services;
  attempt(operation, () => {
    assertVariableLimits([operation.params.variables], core.maxVariables);
    const preparing = core.prepare(client.schema, operation.params, client.websocket);
    const prepared = inTime(core.timeLimit, preparing, operation.origin);
    if (client.starting === undefined && !isThenable(prepared)) return begin(operation, services, prepared);
    return beginInTurn(operation, services, prepared);
  });
}

function beginInTurn(
  operation: SocketOperation,
  services: OperationServices,
  prepared: MaybePromise<PreparedOperation | RequestError>,
): void {
  const { client } = operation;
  const started = Promise.allSettled([prepared, client.starting]).then(() => {
    if (client.starting === started) client.starting = undefined;
    if (!operation.isLive) return;
    attempt(operation, () => settle(prepared, (value) => begin(operation, services, value)));
  });
  client.starting = started;
}

/** Runs the steps of an operation. A failure of any of them fails this operation only. */
function attempt(operation: LiveOperation, steps: () => MaybePromise<void>): void {
  const fail = (error: unknown): void => {
    const isClientError = HttpError.is(error) && error.code !== undefined;
    const reason = isClientError ? refusalError(error.message, error.code) : toGraphQLError(error);
    // Fields of a mutation may have changed data before, for example if `formatError` throws.
    void operation.afterInvalidation(() => operation.fail([reason]));
  };
  void caught(steps, fail);
}

/** Runs a prepared operation, and lets subscribers of `espalier:graphql:operation` observe it. */
function begin(
  operation: SocketOperation,
  services: OperationServices,
  prepared: PreparedOperation | RequestError,
): MaybePromise<void> {
  const { observed } = operation;
  if (observed === undefined) return run(operation, services, prepared);
  return observed.begin(prepared, publish, (seen) => run(operation, services, seen));
}

const publish = (operation: ObservedOperation): void => events.operation.publish(operation);

function run(
  operation: SocketOperation,
  services: OperationServices,
  prepared: PreparedOperation | RequestError,
): MaybePromise<void> {
  if (prepared.kind === 'error') return operation.fail(prepared.errors);
  const kind = prepared.operation.operation;
  if (!services.settings.operations.includes(kind)) {
    return operation.fail([refusalError(`A ${kind} is not accepted over this socket`, 'OPERATION_REFUSED')]);
  }
  const created = operation.client.contextFor(operation.params);
  const context = inTime(services.core.timeLimit, created, operation.origin);
  return settle(context, (context) => admit(operation, services, prepared, context));
}

/** Runs a prepared operation of an event stream. Its results, and its errors, are sent in the stream. */
export function runWithContext(
  operation: LiveOperation,
  services: OperationServices,
  prepared: PreparedOperation,
  context: unknown,
): void {
  attempt(operation, () => admit(operation, services, prepared, context));
}

/** Asks the option `onOperation`, if there is one, and executes the operation. */
function admit(
  operation: LiveOperation,
  services: OperationServices,
  prepared: PreparedOperation,
  context: unknown,
): MaybePromise<void> {
  if (!operation.isLive) return undefined;
  operation.contextValue = context;
  operation.observed ??= observedOf(prepared);
  if (services.onOperation === undefined) return execute(operation, services, prepared);
  return settle(services.onOperation(prepared, operation, operation.source), (admission) => {
    if (!operation.isLive) return undefined;
    if (admission.kind === 'error') return operation.fail(admission.errors);
    operation.extensions = admission.extensions;
    const { expiresAt } = admission;
    if (expiresAt !== undefined && prepared.operation.operation === 'subscription')
      operation.expireBy(expiresAt);
    if (operation.contextForEvent !== undefined) {
      operation.authorizeEvent = services.core.authorizeEvent?.(prepared, operation.source);
    }
    return execute(operation, services, prepared);
  });
}

function execute(
  operation: LiveOperation,
  services: OperationServices,
  prepared: PreparedOperation,
): MaybePromise<void> {
  if (prepared.operation.operation === 'subscription') return subscribe(operation, services, prepared);
  operation.incremental = prepared.incremental;
  operation.caching = prepared.cachePolicy?.startWrite(operation.variableValues);
  return settle(prepared.execute(operation), (outcome) =>
    outcome.kind === 'refused'
      ? operation.fail(outcome.errors)
      : operation.afterInvalidation(() => respond(operation, outcome, services.counters)),
  );
}

function respond(operation: LiveOperation, outcome: ExecutionOutcome, counters: SourceCounters): void {
  operation.send(withExtensions(outcome, operation.extensions).body, 'soon');
  const { rest } = outcome;
  const { caching } = operation;
  if (rest === undefined) operation.complete();
  else sendRest(caching === undefined ? rest : invalidateRest(rest, caching), operation, counters);
}

/** The services that all live operations of one endpoint use. */
export interface OperationServices {
  readonly core: GraphQLCore;
  readonly groups: SubscriptionGroups;
  readonly counters: SourceCounters;
  readonly settings: OperationSettings;
  readonly onOperation: OperationHook | undefined;
}

/** The options of live operations. */
export interface OperationSettings {
  readonly operations: readonly string[];
  readonly drop: false | 'oldest';
  readonly share: ShareFunction | undefined;
}

/** Starts a subscription: opens a private source stream, or joins a group. */
function subscribe(
  operation: LiveOperation,
  { core, groups, counters, settings }: OperationServices,
  prepared: PreparedOperation,
): void {
  operation.droppable = settings.drop === 'oldest';
  const key = isPrivate(operation)
    ? undefined
    : shareKeyOf(settings.share, operation.contextValue, operation.params);
  if (core.cursors !== undefined && !openCursors(operation, prepared, core.cursors, key)) return;
  if (key !== undefined && groups.join(operation, prepared, key)) return;
  operation.appliesBackpressure = !operation.droppable;
  operation.releaseSource = consumeSource(prepared, operation, counters);
}

/**
 * Whether the caller of each event is checked again. A group executes an event once, with one of its members: the others
 * might have lost what the operation requires.
 */
const isPrivate = ({ access, authorizeEvent }: LiveOperation): boolean =>
  authorizeEvent !== undefined && access?.isLimited === true;

/** Returns false if the operation has failed, because the cursor of the client is refused. */
function openCursors(
  operation: LiveOperation,
  prepared: PreparedOperation,
  settings: CursorSettings,
  key: ShareKey | undefined,
): boolean {
  const caller = key === undefined ? { user: settings.user(operation.contextValue) } : { share: key };
  // The cursor of a caller that has lost or got a scope since then is refused.
  const principal = { ...caller, access: operation.access?.key || undefined };
  const binding = identityOf(principal, { ...operation.params, query: prepared.source });
  const opened = OperationCursors.open(settings, binding, operation.cursorRequest);
  if (opened instanceof OperationCursors) {
    operation.cursors = opened;
    return true;
  }
  operation.fail([opened]);
  return false;
}

/**
 * Sends the results of an operation after its first one, each when the client has received the previous ones.
 * They are the source of the operation, which is released when the client cancels it or disconnects.
 */
function sendRest(rest: RemainingResults, operation: LiveOperation, counters: SourceCounters): void {
  let isReading = true;
  counters.sources++;
  operation.appliesBackpressure = true;

  /** Returns false if the source was released before. */
  function stopReading(): boolean {
    if (!isReading) return false;
    isReading = false;
    counters.sources--;
    return true;
  }

  async function read(): Promise<void> {
    const steps = new LoopSteps();
    while (isReading) {
      await (operation.waitForDrain() ?? steps.next());
      if (!isReading) return;
      const { done, value } = await rest.next();
      if (!isReading) return;
      if (done === true) {
        stopReading();
        operation.complete();
      } else operation.send(value, 'soon');
    }
  }

  operation.setSource(() => {
    if (!isReading) return;
    isReading = false;
    returnIterator(rest, operation, counters);
  });
  read().catch((error) => {
    if (stopReading()) operation.fail([toGraphQLError(error)]);
  });
}

/**
 * Returns the close code that a source requests with `closeCode` of its error. Clients reconnect after 1012,
 * 1013 and most application-defined codes, but never repeat an operation that ended with `error`.
 */
export function closeCodeOf(errors: readonly GraphQLError[]): number | undefined {
  const code = readCloseCode(errors[0]?.originalError);
  const allowed =
    typeof code === 'number' && (code === 1012 || code === 1013 || (code >= 4000 && code < 5000));
  return allowed ? code : undefined;
}

function readCloseCode(error: unknown): unknown {
  try {
    return (error as { readonly closeCode?: unknown } | undefined)?.closeCode;
  } catch {
    // A getter of the error has thrown.
    return undefined;
  }
}

/** Bytes that one JSON value takes in addition to its text. */
const VALUE_BYTES = 32;

/** Estimates the memory of a JSON value in bytes. */
export function estimateMemory(value: unknown): number {
  let bytes = 0;
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    bytes += VALUE_BYTES;
    if (typeof next === 'string') bytes += next.length;
    else if (typeof next === 'object' && next !== null) {
      for (const [name, member] of Object.entries(next)) {
        bytes += Array.isArray(next) ? 0 : name.length;
        pending.push(member);
      }
    }
  }
  return bytes;
}
