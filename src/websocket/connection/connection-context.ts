import type { MaybePromise } from '../../../types/connect.ts';
import type { SharedOperation, WebSocketLike } from '../../../types/subscriptions.ts';
import type { ContextFactory } from '../../core/core.ts';
import { isThenable } from '../../execution/types.ts';

type Params = Readonly<Record<string, unknown>>;
type Members = Record<PropertyKey, PropertyDescriptor>;

/** The settings for the contexts of an endpoint. */
export interface ContextPolicy {
  readonly create: ContextFactory;
  /** Whether `context` is a function. */
  readonly isFunction: boolean;
  /** Whether functions read the WebSocket, which then gets the members of its upgrade request. */
  readonly exposesRequest: boolean;
  /** Whether each operation gets its own context. */
  readonly perOperation: boolean;
  /** Whether each event of a subscription gets its own context. */
  readonly perEvent: boolean;
}

const NO_MEMBERS: Members = {};

/** The context of one connection, and the contexts of its operations. */
export class ConnectionContext {
  readonly #policy: ContextPolicy;
  readonly #websocket: WebSocketLike;
  #params: Params = {};
  #value: unknown;
  /** The members that `onConnect` added to the context of the connection. */
  #added: Members = NO_MEMBERS;

  constructor(policy: ContextPolicy, websocket: WebSocketLike) {
    this.#policy = policy;
    this.#websocket = websocket;
  }

  get params(): Params {
    return this.#params;
  }
  /** The context of the connection. */
  get value(): unknown {
    return this.#value;
  }

  async create(params: Params): Promise<void> {
    this.#params = params;
    this.#value = withParams(await this.#policy.create(this.#websocket, undefined, params), params);
  }

  /** Runs the hook. Members that it adds to the context become part of the context of each operation. */
  async connect<T>(hook: () => MaybePromise<T>): Promise<T> {
    if (!this.#policy.perOperation) return hook();
    const before = membersOf(this.#value);
    const returned = await hook();
    this.#added = addedMembers(before, membersOf(this.#value));
    return returned;
  }

  forOperation(operation: SharedOperation): MaybePromise<unknown> {
    const { create, perOperation } = this.#policy;
    if (!perOperation) return this.#value;
    const given = create(this.#websocket, operation, this.#params);
    return isThenable(given) ? given.then((value) => this.#complete(value)) : this.#complete(given);
  }

  #complete(given: unknown): unknown {
    const context = withParams(given, this.#params);
    if (this.#added !== NO_MEMBERS && isRecord(context)) Object.defineProperties(context, this.#added);
    return context;
  }
}

/**
 * Copies a context and adds the client's parameters, so that one client's parameters never reach another
 * through a shared value. The copy keeps the prototype; a value without members (an array, a Map, a string)
 * is returned unchanged. The parameters become single members and are never merged, so that a client cannot
 * choose the names of other members.
 */
function withParams(given: unknown, params: Params): unknown {
  if (given !== undefined && given !== null && !isRecord(given)) return given;
  const source: object = given ?? {};
  const context = Object.create(Object.getPrototypeOf(source), Object.getOwnPropertyDescriptors(source));
  for (const name of ['connection_params', 'connectionParams']) {
    Object.defineProperty(context, name, {
      value: params,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  return context;
}

const membersOf = (context: unknown): Members =>
  isRecord(context) ? Object.getOwnPropertyDescriptors(context) : {};

/** Returns the members that were added or changed. */
function addedMembers(before: Members, after: Members): Members {
  const names = Reflect.ownKeys(after).filter((name) => after[name]?.value !== before[name]?.value);
  if (names.length === 0) return NO_MEMBERS;
  return Object.fromEntries(names.map((name) => [name, after[name]])) as Members;
}

const isRecord = (value: unknown): value is object =>
  Object.prototype.toString.call(value) === '[object Object]';
