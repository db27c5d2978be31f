import { types } from 'node:util';

/**
 * Objects that are searched in one execution besides returned values and the items of returned lists; they
 * may refer to arbitrarily many objects.
 */
const MAX_OBJECTS = 10_000;
const MAX_DEPTH = 10;

// Taken when the module is loaded: fake timers of a test must not delay requests.
const { nextTick } = process;

const noop = (): void => undefined;
const { then } = Promise.prototype;

/**
 * Handles the rejections of promises in values that an execution does not use any more: a promise itself, the
 * items of arrays, sets and maps, and the properties of objects, recursively. Unhandled, such a rejection
 * ends the process.
 *
 * Runs no code of the user: skips getters, proxies, and thenables other than promises, because some
 * (query builders) start their work when `then` is called.
 */
export class UnusedValues {
  readonly #seen = new Set<object>();
  #deepObjects = 0;

  ignoreRejections(value: unknown): void {
    this.#visit(value, 0);
  }

  /**
   * Like `ignoreRejections`, for the root value. Only its properties are searched, because it may be very
   * large.
   */
  ignoreRootRejections(rootValue: unknown): void {
    this.#visit(rootValue, MAX_DEPTH - 1);
  }

  #visit(value: unknown, depth: number): void {
    if (typeof value !== 'object' || value === null || types.isProxy(value)) return;
    if (types.isPromise(value)) {
      then.call(value, (result: unknown) => this.#visit(result, depth), noop);
      return;
    }
    if (depth >= MAX_DEPTH || this.#seen.has(value)) return;
    if (depth > 1 && ++this.#deepObjects > MAX_OBJECTS) return;
    this.#seen.add(value);
    if (Array.isArray(value))
      for (let i = 0; i < value.length; i++) this.#visitProperty(value, String(i), depth);
    else if (value instanceof Set) Set.prototype.forEach.call(value, (item) => this.#visit(item, depth + 1));
    else if (value instanceof Map) Map.prototype.forEach.call(value, (item) => this.#visit(item, depth + 1));
    else if (!ArrayBuffer.isView(value) && !types.isNativeError(value)) {
      for (const key of Object.keys(value)) this.#visitProperty(value, key, depth);
    }
  }

  #visitProperty(object: object, key: string, depth: number): void {
    const property = Object.getOwnPropertyDescriptor(object, key);
    if (property !== undefined && 'value' in property) this.#visit(property.value, depth + 1);
  }
}

/** The objects and lists that the resolvers of an execution have returned. */
export class ReturnedValues {
  readonly #rootValue: unknown;
  #values: unknown[] | undefined;
  #unused: UnusedValues | undefined;
  #readLater: UnusedValues | undefined;
  #isScheduled = false;

  constructor(rootValue: unknown) {
    this.#rootValue = rootValue;
  }

  /** A resolver has returned an object. */
  add(value: object): void {
    if (this.#values === undefined) this.#values = [value];
    else this.#values.push(value);
    if (this.#unused !== undefined) this.fail();
  }

  /**
   * Something failed: values may have become unused. Rejections are reported after the callbacks of
   * `process.nextTick`.
   */
  fail(): void {
    if (this.#unused === undefined) {
      this.#unused = new UnusedValues();
      this.#unused.ignoreRootRejections(this.#rootValue);
    }
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    nextTick(() => {
      this.#isScheduled = false;
      const values = this.#values ?? [];
      this.#values = undefined;
      for (const value of values) this.#unused?.ignoreRejections(value);
    });
  }

  /** Nothing failed, and all values have been read. */
  forget(): void {
    if (this.#unused === undefined) this.#values = undefined;
  }

  /** The properties of an object are read after its type is known. Some of their promises may have rejected by then. */
  readLater(object: unknown): void {
    this.#readLater ??= new UnusedValues();
    this.#readLater.ignoreRejections(object);
  }

  /** The properties of the root value of a mutation are read one after the other. */
  readRootLater(): void {
    if (this.#rootValue === undefined) return;
    this.#readLater ??= new UnusedValues();
    this.#readLater.ignoreRootRejections(this.#rootValue);
  }
}
