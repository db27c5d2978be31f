/**
 * The context of one connection: a copy, so that one client's parameters never reach another through a shared value.
 * The prototype is kept; what is no object of members (an array, a Map, a string) is handed on as it is.
 * Parameters are one member under each name, never merged: a client must not be able to name a member of the context.
 */
export function connectionContext(given: unknown, params: Record<string, unknown>): unknown {
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

const isRecord = (value: unknown): value is object =>
  Object.prototype.toString.call(value) === '[object Object]';
