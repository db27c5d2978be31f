import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { GraphQLError, type GraphQLSchema } from 'graphql';
import type { Context } from 'graphql-ws';
import type { SubscriptionConnection, WebSocketLike } from '../../types/subscriptions.ts';
import { isGraphQLError, refusalError } from '../core/errors.ts';
import { debug } from '../logging/debug.ts';
import type { Dialect, Message } from './dialect.ts';
import { toldErrors } from './failure.ts';
import type { Hub } from './hub.ts';
import type { Operation } from './operation.ts';
import { Operations } from './operations.ts';
import { Outlet } from './outlet.ts';
import { cutReason } from './reason.ts';
import { Schedule } from './schedule.ts';
import { isOpen } from './settings.ts';

/** One WebSocket, as the engine sees it: a class, since there are many and methods should not cost memory for each. */
export class Connection {
  readonly hub: Hub;
  readonly websocket: WebSocketLike;
  readonly dialect: Dialect;
  readonly outlet: Outlet;
  readonly schedule: Schedule;
  readonly operations: Operations;
  /** The upgrade request, until the connection is accepted. */
  request: IncomingMessage | undefined;
  schema: GraphQLSchema | undefined;
  context: unknown;
  params: Record<string, unknown> | undefined;
  /** What the engine keeps of the connection, from `connection_init` on. */
  engine: Context | undefined;
  /** Starts of a legacy client that did not wait for the acknowledgement. */
  waiting: Record<string, unknown>[] | undefined;
  waitingSize = 0;
  /** Operations that start when the one in front of them has; undefined where none is on its way. */
  behind: Operation[] | undefined;
  /** Tells the engine that the socket has closed. */
  leave: ((code: number, reason: string) => Promise<void>) | undefined;
  #closing = false;
  #deliver: ((text: string) => Promise<void>) | undefined;

  constructor(hub: Hub, websocket: WebSocketLike, dialect: Dialect, raw: Duplex | undefined) {
    this.hub = hub;
    this.websocket = websocket;
    this.dialect = dialect;
    this.outlet = new Outlet(websocket, raw, hub.outbox);
    this.schedule = new Schedule(this, raw);
    this.operations = new Operations(this);
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
  /** The connection as hooks see it. */
  view(): SubscriptionConnection {
    const { params, context, dialect, websocket } = this;
    return { connectionParams: params ?? {}, context, protocol: dialect.name, websocket };
  }

  /** The upgrade request is needed no more: it is most of what an idle connection would hold. */
  letGo(): void {
    this.request = undefined;
    this.websocket.request = undefined;
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
      const operation = this.operations.find(message.id);
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
    const operation = id === undefined ? undefined : this.operations.find(id);
    const shown =
      operation === undefined || id === undefined
        ? reason
        : reason.replace(id, () => JSON.parse(operation.key));
    this.dialect.close(this, code, shown);
  }

  /** Closes the socket after what is queued; operations end now. */
  shut(code: number, reason: string, isSlow = false): void {
    if (this.#closing) return;
    debug.subscriptions('closed with %d %j', code, reason);
    this.#closing = true;
    this.#stopAll();
    this.outlet.finish();
    this.schedule.closing(isSlow);
    if (isOpen(this.websocket)) this.websocket.close(code, cutReason(reason));
  }

  /** The socket has closed. */
  closed(code: number, reason: string): void {
    this.#closing = true;
    this.outlet.discard();
    this.#stopAll();
    this.letGo();
    this.leave?.(code, reason).catch((error) => debug.subscriptions('close failed: %O', error));
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
    const payload = toldErrors(this.hub.core, [refusalError(message, 'OPERATION_REFUSED')]);
    this.dialect.send(this, { type: 'error', id: JSON.parse(key), payload });
  }

  /** A reader is too slow for us to hold more for it. 1013: its client tries again later. */
  cutOff(): void {
    this.outlet.discard();
    this.shut(1013, 'Too slow a reader', true);
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
    this.operations.stopAll();
  }

  #fail(error: unknown): void {
    debug.subscriptions('connection failed: %O', error);
    // A GraphQLError from the hook or the context is a refusal in words meant for the client.
    const declared = error instanceof GraphQLError || isGraphQLError(error);
    if (declared) this.dialect.close(this, 4403, error.message || 'Forbidden');
    else this.dialect.close(this, 4500, 'Internal server error');
  }
}
