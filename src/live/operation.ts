import type { GraphQLError } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { Call } from '../core/call.ts';
import { userOf } from '../core/caller.ts';
import type { GraphQLCore } from '../core/core.ts';
import { refusalOf } from '../core/errors.ts';
import { admit, type Result, run } from '../core/run.ts';
import { events } from '../diagnostics/events.ts';
import { toGraphQLError } from '../execution/graphql-error.ts';
import type { ObservedOperation } from '../execution/observed.ts';
import type {
  ExecutionInputs,
  ExecutionOutcome,
  GraphQLParams,
  PreparedOperation,
  RemainingResults,
} from '../execution/types.ts';
import { CLIENT_ABORTED } from '../http/body.ts';
import { CURSOR_OPTIONS } from '../options/scopes.ts';
import { caught, settle } from '../options/values.ts';
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
  type EventContext,
  LoopSteps,
  returnIterator,
  type SourceCounters,
} from './source.ts';

/**
 * One operation in progress. A transport extends it to send messages to the client. The operation is also the
 * consumer of the source, so that an idle subscription is a single object.
 */
export abstract class LiveOperation extends Call implements EventConsumer {
  /** False as soon as no more messages may be sent for the operation. */
  isLive = true;
  /** Whether the source waits for a slow client; otherwise the slow client is closed. */
  appliesBackpressure = false;
  /** Releases the source, or leaves the group. */
  releaseSource: (() => void) | undefined;
  /** Undefined if the client did not ask for cursors. */
  readonly cursorRequest: CursorRequest | undefined;
  /** The cursors of the source, or of the group; undefined if the option `cursors` is not set. */
  cursors: OperationCursors | undefined;
  /** Checks the caller of an event before it is executed; undefined unless the context is per event. */
  authorizeEvent: EventConsumer['authorizeEvent'];
  /** The cursor in the last message without data. */
  #sentPosition: string | undefined;
  #abortController: AbortController | undefined;

  constructor(
    params: GraphQLParams,
    observed: ObservedOperation | undefined,
    cursorRequest: CursorRequest | undefined,
  ) {
    super(params, observed);
    this.cursorRequest = cursorRequest;
  }

  /** The services of the endpoint. */
  abstract readonly services: OperationServices;
  /** Sends one serialised result. `cursor` is its signed cursor, which the result contains too. */
  abstract send(body: string | Buffer, mode: FlushMode, cursor?: string): void;
  /** Ends the operation after its last result. */
  abstract complete(): void;
  /** Ends the operation with errors that are not masked yet. */
  abstract fail(errors: readonly GraphQLError[]): void;
  /** Resolves when the client has read something; undefined when it is not slow. */
  protected abstract waitForClient(): Promise<void> | undefined;
  /** Ends the connection of the operation at a time, in milliseconds since 1970. */
  abstract override expireBy(time: number): void;
  /** Frees the operation's id. */
  protected abstract onRelease(): void;

  /** The client's id; undefined if the stream has one operation only. */
  abstract readonly id: unknown;

  get core(): GraphQLCore {
    return this.services.core;
  }
  get inputs(): ExecutionInputs {
    return this;
  }
  get contextForEvent(): (() => MaybePromise<EventContext>) | undefined {
    return undefined;
  }
  /** The context of one event, whose caller is asked for again. */
  protected freshContext(): MaybePromise<EventContext> {
    const { source, transport, connectionParams } = this;
    return settle(this.core.findCaller?.(source, { transport, connectionParams }), (caller) =>
      settle(this.createContext(caller), (contextValue) => ({ contextValue, caller })),
    );
  }
  get acceptsStreams(): boolean {
    return true;
  }
  /** Created when the engine or a source reads it. */
  get signal(): AbortSignal | undefined {
    if (this.outlivesClient) return undefined;
    if (this.#abortController === undefined) {
      this.#abortController = new AbortController();
      if (!this.isLive) this.#abortController.abort();
    }
    return this.#abortController.signal;
  }

  override start(prepared: PreparedOperation): void {
    // Each event has its own execution.
    if (prepared.operation.operation !== 'subscription') this.incremental = prepared.incremental;
  }

  /** Opens a private source stream, or joins a group. */
  override subscribe(prepared: PreparedOperation): void {
    const { core, groups, counters, settings } = this.services;
    const { event } = prepared;
    if (event !== undefined && this.contextForEvent !== undefined)
      this.authorizeEvent = (inputs) => event(inputs, this.source);
    const key = isPrivate(this) ? undefined : shareKeyOf(settings.share, this.contextValue, this.params);
    if (core.cursors !== undefined && !openCursors(this, prepared, core.cursors, key)) return;
    if (key !== undefined && groups.join(this, prepared, key)) return;
    this.appliesBackpressure = true;
    this.releaseSource = consumeSource(prepared, this, counters);
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

/** Runs an operation of a socket: sends a single result, opens a private source stream, or joins a group. */
export const runOperation = (operation: LiveOperation): void => answer(operation, () => run(operation));

/** Runs the operation of an event stream, which is prepared and has its context. */
export const runPrepared = (operation: LiveOperation, prepared: PreparedOperation): void =>
  answer(operation, () => admit(operation, prepared));

/** Sends the result of an operation. A failure of any step fails this operation only. */
function answer(operation: LiveOperation, steps: () => MaybePromise<Result>): void {
  const send = (): MaybePromise<void> => settle(steps(), (result) => respond(operation, result));
  const fail = (error: unknown): void => {
    if (error !== CLIENT_ABORTED) operation.fail(refusalOf(error).errors);
  };
  void caught(send, fail);
}

function respond(operation: LiveOperation, result: Result): void {
  if (result.kind === 'stream') return;
  if (result.kind === 'error' || result.kind === 'refused') operation.fail(result.errors);
  else {
    const { body, rest } = result;
    operation.send(body, 'soon');
    if (rest === undefined) operation.complete();
    else sendRest(rest, operation, operation.services.counters);
  }
}

/** The services that all live operations of one endpoint use. */
export interface OperationServices {
  readonly core: GraphQLCore;
  readonly groups: SubscriptionGroups;
  readonly counters: SourceCounters;
  readonly settings: OperationSettings;
}

/** The options of live operations. */
export interface OperationSettings {
  readonly share: ShareFunction | undefined;
}

/**
 * Whether the caller of each event is checked again. A group executes an event once, with one of its members: the others
 * might have lost what the operation requires.
 */
const isPrivate = ({ access, authorizeEvent }: LiveOperation): boolean =>
  authorizeEvent !== undefined && access?.hasConditions === true;

/** Returns false if the operation has failed, because the cursor of the client is refused. */
function openCursors(
  operation: LiveOperation,
  prepared: PreparedOperation,
  settings: CursorSettings,
  key: ShareKey | undefined,
): boolean {
  const caller =
    key === undefined
      ? { user: userOf(CURSOR_OPTIONS, settings.user, operation.source, operation) }
      : { share: key };
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
