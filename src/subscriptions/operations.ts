import type { Connection } from './connection.ts';
import type { SubscribePayload } from './dialect.ts';
import { Operation } from './operation.ts';

/** The live operations of one connection, under ids of our own: a client's id may be used again while an older one unwinds. */
export class Operations {
  readonly #connection: Connection;
  /** Under the engine's id, and under the client's as JSON (a quote, a digit or a minus first: never an 'o'). */
  #live: Map<string, Operation> | undefined;
  #nextId = 0;
  /** Refused one after the other. */
  #refused = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get size(): number {
    return this.#live === undefined ? 0 : this.#live.size / 2;
  }

  find(key: string): Operation | undefined {
    return this.#live?.get(key);
  }

  /** A new operation, unless the connection has too many. */
  begin(key: string, payload: SubscribePayload): void {
    const connection = this.#connection;
    const { maxOperations } = connection.hub.settings;
    if (this.size >= maxOperations) {
      if (++this.#refused > maxOperations) connection.shut(4429, 'Too many operations');
      else connection.refuse(key, 'Too many operations at a time');
      return;
    }
    this.#refused = 0;
    const id = `o${(this.#nextId++).toString(36)}`;
    const operation = new Operation(connection, id, key, {
      query: payload.query,
      operationName: payload.operationName ?? undefined,
      variables: payload.variables ?? undefined,
      extensions: payload.extensions ?? undefined,
    });
    this.#live ??= new Map();
    this.#live.set(id, operation);
    this.#live.set(key, operation);
    this.subscribe(id);
  }

  /** The shortest message the engine takes: it keeps it for the operation's life. */
  subscribe(id: string): void {
    this.#connection.forward(`{"id":"${id}","type":"subscribe","payload":{"query":""}}`);
  }

  /** The client wants no more of an operation. */
  cancel(key: string): void {
    const operation = this.find(key);
    if (operation === undefined) return;
    operation.stop();
    this.#connection.forward(`{"id":"${operation.id}","type":"complete"}`);
  }

  /** An operation has ended; its id may already belong to a newer one. */
  forget(operation: Operation): void {
    this.#live?.delete(operation.id);
    if (this.#live?.get(operation.key) === operation) this.#live.delete(operation.key);
  }

  stopAll(): void {
    for (const operation of this.#live?.values() ?? []) operation.stop();
  }
}
