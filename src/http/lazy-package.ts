/**
 * A package or module that a middleware loads when it is created, and not with its own modules: many applications
 * never need it. It must not be loaded first by a request, for which the process may have no free descriptor: Node 20
 * fails every later `import()` of a module whose files it could not read once.
 */
export class LazyPackage<T> {
  /** Undefined until it is loaded. */
  value: T | undefined;
  readonly #import: () => Promise<T>;
  #loading: Promise<T> | undefined;

  constructor(load: () => Promise<T>) {
    this.#import = load;
  }

  /** Loads the package. A failure is not kept. */
  load(): Promise<T> {
    this.#loading ??= this.#import().then(
      (value) => {
        this.value = value;
        return value;
      },
      (error: unknown) => {
        this.#loading = undefined;
        throw error;
      },
    );
    return this.#loading;
  }

  /** Begins to load the package. The first request that needs it gets the error. */
  preload(): void {
    this.load().catch(() => undefined);
  }
}
