/** What happens at one point of an execution. */
export type Action = 'throw' | 'reject' | 'abort' | 'abort and throw';

/**
 * Resolvers tell the script where they are, by names that each execution passes once. At one of them the script acts.
 */
export class Script {
  readonly reached: string[] = [];
  readonly controller = new AbortController();
  readonly #target: string | undefined;
  readonly #action: Action | undefined;

  constructor(target?: string, action?: Action) {
    this.#target = target;
    this.#action = action;
  }

  /** A value at once. */
  at<T>(point: string, value: T): T | Promise<never> {
    this.reached.push(point);
    if (point !== this.#target) return value;
    if (this.#action === 'reject') return Promise.reject(new Error(`rejected at ${point}`));
    this.act(point);
    return value;
  }

  /** A value after some turns, with one point at its start and one at its end. */
  later<T>(point: string, value: T, turns = 2): Promise<T> | Promise<never> {
    const begun = this.at(`${point}, called`, undefined);
    if (begun !== undefined) return begun;
    return this.settle(point, value, turns);
  }

  private async settle<T>(point: string, value: T, turns: number): Promise<T> {
    for (let i = 0; i < turns; i++) await undefined;
    return this.at(`${point}, settled`, value);
  }

  private act(point: string): void {
    if (this.#action?.startsWith('abort')) this.controller.abort(new Error(`aborted at ${point}`));
    if (this.#action?.endsWith('throw')) throw new Error(`thrown at ${point}`);
  }
}
