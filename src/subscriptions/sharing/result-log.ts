/** The result of one event with its cursor. */
interface LoggedResult {
  readonly bytes: Buffer;
  /** The signed cursor. */
  readonly signed: string;
}

/**
 * Results that are kept for clients that continue after a cursor in the same seconds, for example after a
 * deployment.
 */
export class ResultLog {
  readonly #results: LoggedResult[] = [];
  /** The number of results up to each cursor. */
  readonly #counts: Map<string, number>;
  readonly #maxBytes: number;
  #bytes = 0;

  /** `from` is the cursor before the first result. */
  constructor(from: string, maxBytes: number) {
    this.#counts = new Map([[from, 0]]);
    this.#maxBytes = maxBytes;
  }

  get length(): number {
    return this.#results.length;
  }

  /** Returns false if the log is too large, and can no longer be used. */
  append(cursor: string, result: LoggedResult): boolean {
    this.#bytes += result.bytes.length;
    this.#results.push(result);
    this.#counts.set(cursor, this.#results.length);
    return this.#bytes <= this.#maxBytes;
  }

  /** Returns the results after a cursor; undefined if the log has no such cursor. */
  after(cursor: string): readonly LoggedResult[] | undefined {
    const count = this.#counts.get(cursor);
    return count === undefined ? undefined : this.#results.slice(count);
  }
}
