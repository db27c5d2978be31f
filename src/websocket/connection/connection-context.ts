/**
 * The context of one connection: a copy, so that the parameters of one client never reach another through a shared value.
 * The copy keeps the prototype; a value without members (an array, a Map, a string) is returned as it is.
 * The parameters are one member under each name and never merged: a client cannot choose the names of other members.
 */
export function connectionContext(given: unknown, params: Readonly<Record<string, unknown>>): unknown {
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
