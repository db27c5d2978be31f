import { types } from 'node:util';

/**
 * Objects that are searched in one execution besides returned values and the items of returned lists; they
 * may refer to arbitrarily many objects.
 */
const MAX_OBJECTS = 10_000;
const MAX_DEPTH = 10;
/** Items that are read from an iterator that may not end. */
const MAX_ITEMS = 100_000;

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

  /** Like `ignoreRejections`, for the root value. Only its properties are searched, because it may be very large. */
  ignoreRootRejections(rootValue: unknown): void {
    this.#visit(rootValue, MAX_DEPTH - 1);
  }

  /** Like `ignoreRejections`, for the value of a list: reads also the items of a proxy and of an iterator. */
  ignoreItems(list: unknown): void {
    if (typeof list !== 'object' || list === null) return;
    if (Array.isArray(list) && !types.isProxy(list)) {
      this.ignoreRejections(list);
      return;
    }
    try {
      const iterator = (list as Partial<Iterable<unknown>>)[Symbol.iterator]?.();
      if (iterator !== undefined) this.drain(iterator);
    } catch {
      // Nothing waits for the list.
    }
  }

  /** Reads the items that an iterator has left, unless it creates them when they are read and can be closed instead. */
  drain(iterator: Iterator<unknown>): void {
    if (typeof iterator.return === 'function') return;
    try {
      for (let left = MAX_ITEMS; left > 0; left--) {
        const { done, value } = iterator.next();
        if (done) return;
        this.ignoreRejections(value);
      }
    } catch {
      // As above.
    }
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
