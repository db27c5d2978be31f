import type { GraphQLError, GraphQLSchema } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { SharedOperation } from '../../types/subscriptions.ts';
import { events } from '../core/diagnostics.ts';
import type { CursorRequest, OperationCursors } from '../cursors/operation-cursors.ts';
import type { ObservedOperation } from '../execution/observed.ts';
import type {
  ErrorOrigin,
  ExecutionCaching,
  ExecutionInputs,
  ExecutionOutcome,
  GraphQLParams,
  IncrementalFormat,
} from '../execution/types.ts';
import type { EventConsumer } from './consume-source.ts';

/** When a message is written: `'soon'` if the client waits for it, `'batched'` together with other events. */
export type FlushMode = 'soon' | 'batched';

/** The state that the operations of one client share, for operations that `startOperation` prepares. */
export interface OperationClient {
  readonly schema: GraphQLSchema;
  readonly rootValue: unknown;
  /** The request or the socket, for options that are functions of it. */
  readonly source: unknown;
  /** Operations that start after the one that is being prepared; undefined while none is being prepared. */
  queuedOperations: ClientOperation[] | undefined;
  /** The context of one operation. */
  contextFor(operation: SharedOperation): MaybePromise<unknown>;
}

/** An operation that `startOperation` prepares. */
export interface ClientOperation extends LiveOperation {
  readonly client: OperationClient;
}

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
  /** Sends the result of one event of a private source, and releases its buffer once it is written. */
  abstract onResult(outcome: ExecutionOutcome, cursor?: string): void;
  /** Ends the operation after its last result. */
  abstract complete(): void;
  /** Ends the operation with errors that are not masked yet. */
  abstract fail(errors: readonly GraphQLError[]): void;
  /** Resolves when the client has read something; undefined when it is not slow. */
  protected abstract waitForClient(): Promise<void> | undefined;
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
    if (this.caching !== undefined) return undefined;
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
  afterInvalidation(respond: () => void): Promise<void> | undefined {
    const invalidated = this.caching?.invalidate();
    if (invalidated !== undefined) return invalidated.then(respond);
    respond();
    return undefined;
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
