import type { IncomingMessage } from 'node:http';
import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import { type CursorRequest, cursorRequest } from '../cursors/operation-cursors.ts';
import type { ErrorOrigin, ExecutionOutcome, GraphQLParams } from '../execution/types.ts';
import { closeCodeOf } from '../subscriptions/format-errors.ts';
import { type FlushMode, LiveOperation } from '../subscriptions/live-operation.ts';
import { estimateMemory } from '../subscriptions/memory-estimate.ts';
import type { OperationServices } from '../subscriptions/subscribe.ts';
import type { StreamFormat } from './stream-formats.ts';
import type { Envelope } from './stream-queue.ts';

/** The members of an event stream that its operations use. */
export interface OperationStream {
  readonly services: OperationServices;
  readonly format: StreamFormat;
  /** Sets the context for `disconnect`. */
  accept(context: unknown): void;
  push(operation: StreamOperation, message: StreamMessage): void;
  waitForDrain(): Promise<void> | undefined;
  rootValueFor(request: IncomingMessage): unknown;
  formatErrors(errors: readonly GraphQLError[], origin: ErrorOrigin): readonly GraphQLFormattedError[];
  /** Ends an operation with the message that it is complete, or with errors. */
  endOperation(operation: StreamOperation, errors: readonly GraphQLFormattedError[] | undefined): void;
  /** Frees the operation's id. */
  forgetOperation(operation: StreamOperation): void;
  /** Ends the stream, so that the client connects again. */
  closeSocket(): void;
}

/** A result of an operation. */
export interface StreamMessage {
  readonly envelope: Envelope;
  readonly body: Buffer;
  readonly mode: FlushMode;
}

const NO_BODY = Buffer.alloc(0);

/** The request of an operation. */
export interface StreamOperationRequest {
  readonly cursorRequest: CursorRequest | undefined;
  readonly request: IncomingMessage;
  readonly params: GraphQLParams;
  /** The client's id; undefined if the stream has one operation only. */
  readonly id: string | undefined;
}

/**
 * Returns the request of an operation. The parameters stay in memory until the operation ends, so the request
 * has no extensions except the cursor.
 */
export function streamOperationRequest(
  request: IncomingMessage,
  params: GraphQLParams,
  id: string | undefined,
): StreamOperationRequest {
  return {
    request,
    params: { ...params, extensions: undefined },
    id,
    cursorRequest: cursorRequest(params.extensions, request.headers['last-event-id']),
  };
}

/** An operation whose results are sent in an event stream. */
export class StreamOperation extends LiveOperation implements Envelope {
  readonly stream: OperationStream;
  readonly request: IncomingMessage;
  readonly id: string | undefined;
  readonly before: string;
  readonly after: string;
  /** The estimated memory of its document and variables. */
  readonly bytes: number;
  /** Whether a result was sent. */
  hasResults = false;

  constructor(
    stream: OperationStream,
    { request, params, id, cursorRequest }: StreamOperationRequest,
    around: Envelope,
  ) {
    super(params, cursorRequest);
    this.stream = stream;
    this.request = request;
    this.id = id;
    this.before = around.before;
    this.after = around.after;
    this.bytes = estimateMemory(params);
  }

  get origin(): ErrorOrigin {
    const { request, params, isLive } = this;
    const { operationName } = params;
    return { transport: 'http', operationName, request, socket: undefined, aborted: !isLive };
  }
  get rootValue(): unknown {
    return this.stream.rootValueFor(this.request);
  }

  get source(): IncomingMessage {
    return this.request;
  }

  send(body: string | Buffer, mode: FlushMode, cursor?: string): void {
    if (!this.isLive) return;
    this.hasResults = true;
    const envelope = cursor === undefined ? this : this.#withCursor(cursor);
    this.stream.push(this, { envelope, body: typeof body === 'string' ? Buffer.from(body) : body, mode });
  }

  onResult({ body }: ExecutionOutcome, cursor?: string): void {
    this.send(body, 'batched', cursor);
  }

  complete(): void {
    if (this.isLive) this.stream.endOperation(this, undefined);
  }

  fail(errors: readonly GraphQLError[]): void {
    if (!this.isLive) return;
    this.observed?.fail(errors);
    if (closeCodeOf(errors) !== undefined) this.stream.closeSocket();
    else this.stream.endOperation(this, this.stream.formatErrors(errors, this.origin));
  }

  protected waitForClient(): Promise<void> | undefined {
    return this.stream.waitForDrain();
  }

  protected override sendCursor(cursor: string): void {
    const before = this.stream.format.cursorLine(cursor);
    if (before === '') return;
    const envelope = { before, after: '\n', droppable: this.droppable };
    this.stream.push(this, { envelope, body: NO_BODY, mode: 'batched' });
  }

  #withCursor(cursor: string): Envelope {
    const before = this.stream.format.cursorLine(cursor) + this.before;
    return { before, after: this.after, droppable: this.droppable };
  }

  protected onRelease(): void {
    this.stream.forgetOperation(this);
  }
}
