import type { MaybePromise } from '../../../types/connect.ts';
import type { SharedOperation, WebSocketLike } from '../../../types/subscriptions.ts';
import type { ContextFactory } from '../../core/context.ts';
import { isThenable } from '../../execution/promises.ts';

type Params = Readonly<Record<string, unknown>>;
type Members = Record<PropertyKey, PropertyDescriptor>;

/** How the contexts of an endpoint are created. */
export interface ContextPolicy {
  readonly create: ContextFactory;
  /** Whether the WebSocket needs the members of its upgrade request. */
  readonly isFunction: boolean;
  /** Whether each operation gets its own context. */
  readonly perOperation: boolean;
}

const NO_MEMBERS: Members = {};

/** The context of one connection, and those of its operations. */
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

  /** Runs the hook; what it adds to the context becomes part of the context of each operation. */
  async connect<T>(hook: () => MaybePromise<T>): Promise<T> {
    if (!this.#policy.perOperation) return hook();
    const before = membersOf(this.#value);
    const answer = await hook();
    this.#added = addedMembers(before, membersOf(this.#value));
    return answer;
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
 * A copy of a context with the client's parameters, so that the parameters of one client never reach another through a
 * shared value. The copy keeps the prototype; a value without members (an array, a Map, a string) is returned as it is.
 * The parameters are one member under each name and never merged: a client cannot choose the names of other members.
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

/** The members that were added or changed. */
function addedMembers(before: Members, after: Members): Members {
  const names = Reflect.ownKeys(after).filter((name) => after[name]?.value !== before[name]?.value);
  if (names.length === 0) return NO_MEMBERS;
  return Object.fromEntries(names.map((name) => [name, after[name]])) as Members;
}

const isRecord = (value: unknown): value is object =>
  Object.prototype.toString.call(value) === '[object Object]';
