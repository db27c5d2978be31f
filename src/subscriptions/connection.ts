import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { GraphQLError, type GraphQLSchema } from 'graphql';
import type { Context } from 'graphql-ws';
import type { SubscriptionConnection, WebSocketLike } from '../../types/subscriptions.ts';
import { refusals } from '../debug.ts';
import { isGraphQLError, refusalError } from '../graphql/errors.ts';
import type { Dialect, Message, SubscribePayload } from './dialect.ts';
import type { Hub } from './hub.ts';
import { Operation } from './operation.ts';
import { Outlet } from './outlet.ts';
import { Schedule } from './schedule.ts';
import { isOpen } from './settings.ts';

/** One WebSocket, as the engine sees it: a class, since there are many and methods should not cost memory for each. */
export class Connection {
  readonly hub: Hub;
  readonly websocket: WebSocketLike;
  readonly dialect: Dialect;
  readonly outlet: Outlet;
  readonly schedule: Schedule;
  /** The upgrade request, until the connection is accepted. */
  request: IncomingMessage | undefined;
  schema: GraphQLSchema | undefined;
  context: unknown;
  params: Record<string, unknown> | undefined;
  /** What the engine keeps of the connection, from `connection_init` on. */
  engine: Context | undefined;
  /** Starts of a legacy client that did not wait for the acknowledgement. */
  waiting: Record<string, unknown>[] | undefined;
  /** Tells the engine that the socket has closed. */
  leave: ((code: number, reason: string) => Promise<void>) | undefined;
  /** Live operations, under the engine's id and under the client's as JSON (a quote, a digit or a minus: never an 'o'). */
  #operations: Map<string, Operation> | undefined;
  #nextId = 0;
  #refused = 0;
  #closing = false;
  #deliver: ((text: string) => Promise<void>) | undefined;

  constructor(hub: Hub, websocket: WebSocketLike, dialect: Dialect, raw: Duplex | undefined) {
    this.hub = hub;
    this.websocket = websocket;
    this.dialect = dialect;
    this.outlet = new Outlet(websocket, raw, hub.outbox);
    this.schedule = new Schedule(this, raw);
  }

  /** The one the engine speaks, whatever the client does. */
  get protocol(): string {
    return 'graphql-transport-ws';
  }
  get initialised(): boolean {
    return this.engine !== undefined;
  }
  get ready(): boolean {
    return this.engine?.acknowledged === true;
  }
  get closing(): boolean {
    return this.#closing;
  }
  get operations(): number {
    return this.#operations === undefined ? 0 : this.#operations.size / 2;
  }

  /** The connection as hooks see it. */
  view(): SubscriptionConnection {
    const { params, context, dialect, websocket } = this;
    return { connectionParams: params ?? {}, context, protocol: dialect.name, websocket };
  }

  rootValue(): unknown {
    return this.hub.core.rootValueFor(this.websocket);
  }

  /** The engine's way to listen. */
  onMessage(deliver: (text: string) => Promise<void>): void {
    this.#deliver = deliver;
  }

  receive(text: string): void {
    if (!this.#closing) this.dialect.receive(this, text);
  }

  /** Tells the engine. */
  forward(text: string): void {
    this.#deliver?.(text).catch((error) => this.#fail(error));
  }

  /** The engine's message to the client: its id becomes the client's, unless nobody waits for it any more. */
  send(text: string): void {
    const message = JSON.parse(text) as Message;
    if (typeof message.id === 'string') {
      const operation = this.#operations?.get(message.id);
      if (operation === undefined) return;
      // Free before the client can read that it is.
      operation.retire();
      message.id = JSON.parse(operation.key);
    }
    this.dialect.send(this, message);
  }

  /** The engine wants the socket closed. */
  close(code: number, reason: string): void {
    const id = code === 4409 ? reason.split(' ')[2] : undefined;
    const operation = id === undefined ? undefined : this.#operations?.get(id);
    const shown =
      operation === undefined || id === undefined ? reason : reason.replace(id, JSON.parse(operation.key));
    this.dialect.close(this, code, shown);
  }

  /** Closes the socket after what is queued; operations end now. */
  shut(code: number, reason: string): void {
    if (this.#closing) return;
    refusals.subscriptions('closed with %d %s', code, reason);
    this.#closing = true;
    this.#stopAll();
    this.outlet.finish();
    this.schedule.closing();
    if (isOpen(this.websocket)) this.websocket.close(code, cut(reason));
  }

  /** The socket has closed. */
  closed(code: number, reason: string): void {
    this.#closing = true;
    this.outlet.discard();
    this.outlet.wake();
    this.#stopAll();
    this.request = undefined;
    this.leave?.(code, reason).catch((error) => refusals.subscriptions('close failed: %O', error));
  }

  /** A message of our own. */
  write(message: Message): void {
    this.#push(undefined, Buffer.from(JSON.stringify(message)), true);
  }

  /** A result of an operation. */
  result(operation: Operation, body: Buffer, soon: boolean): void {
    this.#push(operation, body, soon);
  }

  /** An `error` for an id that has no operation. */
  refuse(key: string, message: string): void {
    const payload = this.hub.core.formatErrors([refusalError(message, 'OPERATION_REFUSED')]);
    this.dialect.send(this, { type: 'error', id: JSON.parse(key), payload });
  }

  find(key: string): Operation | undefined {
    return this.#operations?.get(key);
  }

  /** A new operation, unless the connection has too many. */
  begin(key: string, payload: SubscribePayload): void {
    const { maxOperations } = this.hub.settings;
    if (this.operations >= maxOperations) {
      if (++this.#refused > maxOperations) {
        this.shut(4429, 'Too many operations');
        return;
      }
      this.refuse(key, 'Too many operations at a time');
      return;
    }
    this.#refused = 0;
    const id = `o${(this.#nextId++).toString(36)}`;
    const operation = new Operation(this, id, key, {
      query: payload.query,
      operationName: payload.operationName ?? undefined,
      variables: payload.variables ?? undefined,
      extensions: payload.extensions ?? undefined,
    });
    this.#operations ??= new Map();
    this.#operations.set(id, operation);
    this.#operations.set(key, operation);
    this.subscribe(id);
  }

  /** The shortest message the engine takes: it keeps it for the operation's life. */
  subscribe(id: string): void {
    this.forward(`{"id":"${id}","type":"subscribe","payload":{"query":""}}`);
  }

  /** The client wants no more of an operation. */
  cancel(key: string): void {
    const operation = this.find(key);
    if (operation === undefined) return;
    operation.stop();
    this.forward(`{"id":"${operation.id}","type":"complete"}`);
  }

  /** An operation has ended; its id may already belong to a newer one. */
  forget(operation: Operation): void {
    this.#operations?.delete(operation.id);
    if (this.#operations?.get(operation.key) === operation) this.#operations.delete(operation.key);
  }

  /** A reader is too slow for us to hold more for it. 1013: its client tries again later. */
  cutOff(): void {
    this.outlet.discard();
    this.shut(1013, 'Too slow a reader');
  }

  #push(envelope: Operation | undefined, body: Buffer, soon: boolean): void {
    if (this.#closing) return;
    const { maxBufferedBytes } = this.hub.settings;
    if (this.outlet.backlog > maxBufferedBytes) {
      this.outlet.flush();
      if (envelope?.droppable === true) this.outlet.shrink(maxBufferedBytes);
      else if (envelope?.patient !== true && this.outlet.backlog > maxBufferedBytes) {
        this.cutOff();
        return;
      }
    }
    this.outlet.push(envelope, body, soon);
  }

  #stopAll(): void {
    this.waiting = undefined;
    for (const operation of this.#operations?.values() ?? []) operation.stop();
  }

  #fail(error: unknown): void {
    refusals.subscriptions('connection failed: %O', error);
    // A GraphQLError from the hook or the context is a refusal in words meant for the client.
    const declared = error instanceof GraphQLError || isGraphQLError(error);
    if (declared) this.dialect.close(this, 4403, error.message || 'Forbidden');
    else this.dialect.close(this, 4500, 'Internal server error');
  }
}

/** A close frame holds 123 bytes of reason (RFC 6455 §5.5); a character is not cut in two. */
function cut(reason: string): string {
  const bytes = Buffer.from(reason);
  if (bytes.length <= 123) return reason;
  let end = 123;
  while (((bytes[end] as number) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
