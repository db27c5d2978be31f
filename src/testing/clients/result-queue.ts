import type { OperationResult, SubscriptionResults } from '../../../types/testing.ts';

type Result = OperationResult<unknown>;

/** The source of results: the client's side of one transport. */
export interface ResultSource {
  /** Stops reading from the connection, so that the server sees a slow client. */
  pause(): void;
  resume(): void;
  /** Ends the operation and closes the connection. */
  close(): Promise<void>;
}

/** Results that may be queued before the client stops reading. */
const MAX_QUEUED = 16;

/** The results that a client has received, in order, until they are read. */
export class ResultQueue implements SubscriptionResults<unknown> {
  acknowledgement: unknown;
  /** Called after the last result was received. */
  onEnd: () => void = () => undefined;
  readonly #source: ResultSource;
  readonly #results: Result[] = [];
  readonly #waiting: PromiseWithResolvers[] = [];
  #isEnded = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(source: ResultSource) {
    this.#source = source;
  }

  push(result: Result): void {
    if (this.#isEnded) return;
    const reader = this.#waiting.shift();
    if (reader !== undefined) reader.resolve({ value: result, done: false });
    else if (this.#results.push(result) >= MAX_QUEUED) this.#source.pause();
  }

  /** Ends the results after those that are queued. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.onEnd();
    for (const { resolve } of this.#waiting.splice(0)) resolve({ value: undefined, done: true });
  }

  /** Lets the read after those of the queued results reject. */
  fail(error: unknown): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.onEnd();
    const [reader, ...others] = this.#waiting.splice(0);
    if (reader === undefined) this.#failure = { error };
    else reader.reject(error);
    for (const { resolve } of others) resolve({ value: undefined, done: true });
  }

  async next(): Promise<IteratorResult<Result, undefined>> {
    const result = this.#results.shift();
    if (result !== undefined) {
      if (this.#results.length < MAX_QUEUED) this.#source.resume();
      return { value: result, done: false };
    }
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure.error;
    if (this.#isEnded) return { value: undefined, done: true };
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  async return(): Promise<IteratorResult<Result, undefined>> {
    this.#results.length = 0;
    this.#failure = undefined;
    this.end();
    await this.#source.close();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

interface PromiseWithResolvers {
  resolve(result: IteratorResult<Result, undefined>): void;
  reject(error: unknown): void;
}
