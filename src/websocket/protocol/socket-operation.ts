import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import type { MaybePromise } from '../../../types/connect.ts';
import type { SubscriptionConnection } from '../../../types/subscriptions.ts';
import type { CursorRequest } from '../../cursors/operation-cursors.ts';
import { ObservedOperation } from '../../execution/observed.ts';
import type { ErrorOrigin, ExecutionOutcome, GraphQLParams } from '../../execution/types.ts';
import { isObject } from '../../options/rules.ts';
import { closeCodeOf } from '../../subscriptions/format-errors.ts';
import { type FlushMode, LiveOperation, type OperationClient } from '../../subscriptions/live-operation.ts';
import type { FrameEnvelope } from '../write/frames.ts';
import type { ResultTarget } from '../write/large-results.ts';
import type { SendQueue } from '../write/send-queue.ts';

// Taken when the module is loaded: fake timers of a test must not delay requests.
export const queueMicrotask: typeof globalThis.queueMicrotask = globalThis.queueMicrotask;

/** The members of a connection that its operations use. */
export interface OperationConnection extends OperationClient {
  readonly queue: SendQueue;
  describe(): SubscriptionConnection;
  /** Whether each event of a subscription gets its own context from `contextFor`. */
  readonly hasContextPerEvent: boolean;
  sendResult(operation: SocketOperation, body: Buffer, mode: FlushMode): void;
  sendPrivateResult(operation: SocketOperation, outcome: ExecutionOutcome): void;
  readonly origin: ErrorOrigin;
  formatErrors(errors: readonly GraphQLError[], origin: ErrorOrigin): readonly GraphQLFormattedError[];
  closeSocket(code: number, reason: string): void;
}

/** The members of a protocol session that its operations use. */
export interface OperationSession {
  /** The type of the messages that carry results. */
  readonly resultType: string;
  /** Ends the operation with `complete`, or with `error` if there are errors. */
  endOperation(operation: SocketOperation, errors: readonly GraphQLFormattedError[] | undefined): void;
  /** Frees the operation's id. */
  forgetOperation(operation: SocketOperation): void;
}

/** The message that starts an operation. */
interface SocketOperationRequest {
  /** The client's id as JSON. */
  readonly key: string;
  readonly params: GraphQLParams;
  /** The estimated memory of the document and variables. */
  readonly bytes: number;
  readonly cursorRequest: CursorRequest | undefined;
}

/** An operation of a WebSocket client. */
export class SocketOperation extends LiveOperation implements FrameEnvelope, ResultTarget {
  readonly client: OperationConnection;
  /** The client's id as JSON. */
  readonly key: string;
  readonly prefix: string;
  /** The estimated memory of its document and variables. */
  readonly bytes: number;
  readonly #session: OperationSession;
  #hasEnded = false;

  constructor(
    client: OperationConnection,
    session: OperationSession,
    { key, params, bytes, cursorRequest }: SocketOperationRequest,
  ) {
    super(params, cursorRequest);
    this.client = client;
    this.key = key;
    this.bytes = bytes;
    this.#session = session;
    const prefix = `{"id":${key},"type":"${session.resultType}","payload":`;
    // One character per UTF-8 byte.
    this.prefix = Buffer.from(prefix).toString('latin1');
  }

  get origin(): ErrorOrigin {
    const { operationName } = this.params;
    return { ...this.client.origin, operationName, aborted: !this.isLive };
  }
  override get contextForEvent(): (() => MaybePromise<unknown>) | undefined {
    return this.client.hasContextPerEvent ? () => this.client.contextFor(this.params) : undefined;
  }
  get rootValue(): unknown {
    return this.client.rootValue;
  }
  get source(): unknown {
    return this.client.source;
  }
  get queue(): SendQueue {
    return this.client.queue;
  }
  get id(): unknown {
    return JSON.parse(this.key);
  }

  /** Lets subscribers of `espalier:graphql:operation` observe the operation. */
  observe(extensions: unknown): void {
    const { connectionParams, websocket } = this.client.describe();
    this.observed = new ObservedOperation({
      transport: 'websocket',
      request: undefined,
      socket: websocket,
      connectionParams,
      extensions: isObject(extensions) ? extensions : undefined,
    });
  }

  send(body: string | Buffer, mode: FlushMode): void {
    if (!this.isLive) return;
    this.client.sendResult(this, typeof body === 'string' ? Buffer.from(body) : body, mode);
  }

  onResult(outcome: ExecutionOutcome): void {
    this.client.sendPrivateResult(this, outcome);
  }

  complete(): void {
    this.#end(undefined);
  }

  fail(errors: readonly GraphQLError[]): void {
    this.observed?.fail(errors);
    const code = this.isLive ? closeCodeOf(errors) : undefined;
    if (code === undefined) this.#end(this.client.formatErrors(errors, this.origin));
    else this.client.closeSocket(code, errors[0]?.message ?? '');
  }

  protected waitForClient(): Promise<void> | undefined {
    return this.client.queue.waitForDrain();
  }

  protected onRelease(): void {
    this.#session.forgetOperation(this);
  }

  /**
   * Sends the last message in a microtask, so that the id stays in use for all messages that arrived in the
   * same packet.
   */
  #end(errors: readonly GraphQLFormattedError[] | undefined): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    queueMicrotask(() => {
      if (this.isLive) this.#session.endOperation(this, errors);
    });
  }
}
