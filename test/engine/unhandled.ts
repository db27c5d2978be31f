/**
 * graphql-js 16 leaves rejections unhandled when a list fails while other items of it are pending, which would end the
 * process. Every promise made by `then` gets a handler here; that changes neither what it is nor its turn.
 */
export function ignoreUnhandledRejections(): void {
  const { then } = Promise.prototype;
  const patched = function (this: Promise<unknown>, ...handlers: Parameters<typeof then>): unknown {
    const derived = then.apply(this, handlers);
    then.call(derived, undefined, () => undefined);
    return derived;
  };
  beforeAll(() => void Reflect.set(Promise.prototype, 'then', patched));
  afterAll(() => void Reflect.set(Promise.prototype, 'then', then));
}
