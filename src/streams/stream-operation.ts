import type { IncomingMessage } from 'node:http';
import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import type { ErrorOrigin, ExecutionOutcome, GraphQLParams } from '../execution/types.ts';
import { closeCodeOf } from '../subscriptions/format-errors.ts';
import { type FlushMode, LiveOperation } from '../subscriptions/live-operation.ts';
import { estimateMemory } from '../subscriptions/memory-estimate.ts';
import type { OperationServices } from '../subscriptions/start.ts';
import type { Envelope } from './stream-queue.ts';

/** The members of an event stream that its operations use. */
export interface OperationStream {
  readonly services: OperationServices;
  /** The context for `disconnect`. */
  context: unknown;
  push(operation: StreamOperation, body: Buffer, mode: FlushMode): void;
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

/** The request of an operation. */
export interface OperationRequest {
  readonly request: IncomingMessage;
  readonly params: GraphQLParams;
  /** The client's id; undefined if the stream has one operation only. */
  readonly id: string | undefined;
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

  constructor(stream: OperationStream, { request, params, id }: OperationRequest, around: Envelope) {
    super(params);
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

  send(body: string | Buffer, mode: FlushMode): void {
    if (!this.isLive) return;
    this.hasResults = true;
    this.stream.push(this, typeof body === 'string' ? Buffer.from(body) : body, mode);
  }

  onResult({ body }: ExecutionOutcome): void {
    this.send(body, 'batched');
  }

  complete(): void {
    if (this.isLive) this.stream.endOperation(this, undefined);
  }

  fail(errors: readonly GraphQLError[]): void {
    if (!this.isLive) return;
    if (closeCodeOf(errors) !== undefined) this.stream.closeSocket();
    else this.stream.endOperation(this, this.stream.formatErrors(errors, this.origin));
  }

  protected waitForClient(): Promise<void> | undefined {
    return this.stream.waitForDrain();
  }

  protected onRelease(): void {
    this.stream.forgetOperation(this);
  }
}
