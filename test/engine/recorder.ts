/** An event at one point of an execution. */
export type Action = 'throw' | 'reject' | 'abort' | 'abort and throw';

/**
 * Records the points that an execution reaches. Each point has a name that occurs once. At the target point the recorder
 * throws, rejects or aborts.
 */
export class Recorder {
  readonly reached: string[] = [];
  readonly controller = new AbortController();
  readonly #target: string | undefined;
  readonly #action: Action | undefined;

  constructor(target?: string, action?: Action) {
    this.#target = target;
    this.#action = action;
  }

  /** Records a point and returns the value. */
  at<T>(point: string, value: T): T | Promise<never> {
    this.reached.push(point);
    if (point !== this.#target) return value;
    if (this.#action === 'reject') return Promise.reject(new Error(`rejected at ${point}`));
    this.act(point);
    return value;
  }

  /** Returns a promise of the value, with one point at its start and one at its end. */
  later<T>(point: string, value: T, microtasks = 2): Promise<T> | Promise<never> {
    const begun = this.at(`${point}, called`, undefined);
    if (begun !== undefined) return begun;
    return this.settle(point, value, microtasks);
  }

  private async settle<T>(point: string, value: T, microtasks: number): Promise<T> {
    for (let i = 0; i < microtasks; i++) await undefined;
    return this.at(`${point}, settled`, value);
  }

  private act(point: string): void {
    if (this.#action?.startsWith('abort')) this.controller.abort(new Error(`aborted at ${point}`));
    if (this.#action?.endsWith('throw')) throw new Error(`thrown at ${point}`);
  }
}
