import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import type { StreamConnection } from '../../types/subscriptions.ts';
import type { ErrorOrigin } from '../execution/types.ts';
import { StreamWriter } from '../http/stream/stream-writer.ts';
import type { LiveConnection, LiveEndpoint } from '../subscriptions/endpoint.ts';
import { formatErrorsSafely } from '../subscriptions/format-errors.ts';
import type { OperationServices } from '../subscriptions/subscribe.ts';
import { StreamDeadlines } from './stream-deadlines.ts';
import type { StreamFormat } from './stream-formats.ts';
import {
  type OperationStream,
  type StreamMessage,
  StreamOperation,
  type StreamOperationRequest,
} from './stream-operation.ts';
import { StreamOperations } from './stream-operations.ts';
import { type JoinMessages, StreamQueue } from './stream-queue.ts';

/** One streaming response with its operations, or the reservation of one. */
export class EventStream implements LiveConnection, OperationStream {
  readonly format: StreamFormat;
  isClosing = false;
  isAccepted = false;
  #context: unknown;
  /** The time of the next keep-alive message, by the timer of the event streams. */
  pingAt: number = Number.POSITIVE_INFINITY;
  readonly endpoint: LiveEndpoint;
  readonly services: OperationServices;
  readonly #queue: StreamQueue;
  readonly #operations = new StreamOperations();
  #request: IncomingMessage;
  #writer: StreamWriter | undefined;
  readonly #deadlines = new StreamDeadlines();
  readonly #onClosed: (stream: EventStream) => void;

  constructor(
    { endpoint, join, onClosed }: StreamServices,
    { request, format }: { request: IncomingMessage; format: StreamFormat },
  ) {
    this.endpoint = endpoint;
    const { core, groups, counters, settings } = endpoint;
    this.services = { core, groups, counters, settings, onOperation: core.operationHookFor() };
    this.#queue = new StreamQueue(endpoint.scheduler, join);
    this.#request = request;
    this.#onClosed = onClosed;
    this.format = format;
    endpoint.add(this);
  }

  get operationCount(): number {
    return this.#operations.size;
  }
  get isOpen(): boolean {
    return this.#writer !== undefined;
  }

  describe(): StreamConnection {
    const [context, request, { protocol }] = [this.#context, this.#request, this.format];
    return { connectionParams: {}, context, protocol, websocket: undefined, request };
  }

  accept(context: unknown): void {
    this.#context = context;
    this.isAccepted = true;
  }

  /** Begins the response. */
  open(request: IncomingMessage, res: ServerResponse): void {
    this.#request = request;
    const writer = new StreamWriter(res, this.format.framing);
    this.#writer = writer;
    writer.onClosed(() => this.#close());
    writer.open(200);
    this.#queue.open(writer);
  }

  /**
   * Adds an operation.
   *
   * @throws HttpError 409, 413, 429.
   */
  addOperation(request: StreamOperationRequest): StreamOperation {
    const operation = new StreamOperation(this, request, this.format.resultEnvelope(request.id));
    this.#operations.add(operation, this.endpoint.settings);
    return operation;
  }

  cancelOperation(id: string): void {
    this.#operations.get(id)?.cancel();
  }

  push(operation: StreamOperation, { envelope, body, mode }: StreamMessage): void {
    if (this.isClosing) return;
    const queue = this.#queue;
    const { maxBufferedBytes } = this.endpoint.settings;
    if (queue.pendingBytes > maxBufferedBytes) {
      queue.flush();
      if (operation.droppable) queue.dropOldest(maxBufferedBytes);
      else if (!operation.appliesBackpressure && queue.pendingBytes > maxBufferedBytes) {
        this.#closeSlowClient();
        return;
      }
    }
    queue.push(envelope, body, mode);
  }

  waitForDrain(): Promise<void> | undefined {
    return this.#queue.waitForDrain();
  }

  rootValueFor(request: IncomingMessage): unknown {
    return this.endpoint.core.rootValueFor(request);
  }

  formatErrors(errors: readonly GraphQLError[], origin: ErrorOrigin): readonly GraphQLFormattedError[] {
    return formatErrorsSafely(this.endpoint.core, errors, origin);
  }

  endOperation(operation: StreamOperation, errors: readonly GraphQLFormattedError[] | undefined): void {
    const { id, hasResults } = operation;
    if (errors !== undefined) {
      const envelope = this.format.errorEnvelope(id, hasResults);
      this.#queue.push(envelope, Buffer.from(JSON.stringify(errors)), 'soon');
    }
    // Frees the id before the client receives the message that ends the operation.
    operation.release();
    if (id === undefined) this.#end();
    else this.#queue.push(NO_ENVELOPE, Buffer.from(this.format.completion(id)), 'soon');
  }

  forgetOperation(operation: StreamOperation): void {
    this.#operations.delete(operation);
  }

  /** Ends the response without its ending, and its connection, so that the client connects again. */
  closeSocket(): void {
    if (this.isClosing) return;
    this.#sendPositions();
    this.#cancelOperations();
    this.#queue.flushAll();
    if (this.endpoint.core.cursors !== undefined) this.#writer?.write(this.format.retryMessage());
    if (this.#writer === undefined) this.#close();
    else this.#writer.endConnection();
  }

  keepAlive(): void {
    if (this.isClosing) return;
    this.#sendPositions();
    this.#writer?.keepAlive();
  }

  checkDeadlines(now: number): void {
    const { isClosing, isOpen } = this;
    if (!this.#deadlines.isLate(now, { queue: this.#queue, isClosing, isOpen })) return;
    if (isClosing) this.#writer?.destroy();
    else this.#closeSlowClient();
  }

  /** Ends the response after its last message. */
  #end(): void {
    this.isClosing = true;
    this.#queue.flushAll();
    this.#writer?.end();
  }

  /** Disconnects a client whose queue is full. Its messages are lost. */
  #closeSlowClient(): void {
    this.#cancelOperations();
    this.#queue.discard();
    if (this.#writer === undefined) this.#close();
    else this.#writer.destroy();
  }

  #sendPositions(): void {
    for (const operation of this.#operations.all()) operation.sendPosition();
  }

  #cancelOperations(): void {
    this.isClosing = true;
    for (const operation of this.#operations.all()) operation.cancel();
  }

  /** Called when the response has ended, or the reservation is not used any more. */
  #close(): void {
    this.#cancelOperations();
    this.#queue.discard();
    this.endpoint.remove(this);
    this.#onClosed(this);
  }
}

/** The services that the event streams of one handler share. */
interface StreamServices {
  readonly endpoint: LiveEndpoint;
  readonly join: JoinMessages;
  onClosed(stream: EventStream): void;
}

const NO_ENVELOPE = { before: '', after: '', droppable: false };
