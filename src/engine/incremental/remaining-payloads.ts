import type { RemainingResults } from '../../execution/types.ts';
import type { PART_FAILED, PART_SUCCEEDED } from '../run/deferred-parts.ts';
import type { DeferredOperation, PartListener } from './deferred-operation.ts';
import type { Found, Part } from './delivery-groups.ts';
import type { PayloadText } from './payload-text.ts';
import { WorkQueue } from './work-queue.ts';

type Result = IteratorResult<string, undefined>;

/** A call of `next` that waits. */
interface Call {
  readonly promise: Promise<Result>;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

const END: Result = { done: true, value: undefined };
const RESOLVED = Promise.resolve();

/**
 * The payloads after the first one. The parts start with the first call of `next`, and a payload contains
 * everything that is complete when it is read.
 */
export class RemainingPayloads implements RemainingResults, PartListener {
  readonly #operation: DeferredOperation;
  readonly #queue: WorkQueue;
  readonly #text: PayloadText;
  #call: Call | undefined;
  #hasStarted = false;
  #isScheduled = false;
  #hasEnded = false;
  /** The error that the next call of `next` rejects with. */
  #error: { readonly reason: unknown } | undefined;

  constructor(operation: DeferredOperation, text: PayloadText) {
    this.#operation = operation;
    this.#queue = new WorkQueue(operation);
    this.#text = text;
    operation.listener = this;
  }

  /** Returns the members of the first payload after `data`. */
  begin(found: Found): string {
    const members = this.#text.first(this.#queue.begin(found));
    const { signal } = this.#operation.inputs;
    if (signal?.aborted === true) this.#fail(signal.reason);
    else signal?.addEventListener('abort', this.#onAbort);
    return members;
  }

  next(): Promise<Result> {
    if (this.#call !== undefined) {
      const { promise } = this.#call;
      const next = (): Promise<Result> => this.next();
      return promise.then(next, next);
    }
    if (this.#error !== undefined) {
      const { reason } = this.#error;
      this.#error = undefined;
      return Promise.reject(reason);
    }
    if (this.#hasEnded) return Promise.resolve(END);
    const call = createCall();
    this.#call = call;
    this.#schedule();
    return call.promise;
  }

  return(): Promise<Result> {
    this.#end();
    this.#error = undefined;
    this.#take()?.resolve(END);
    return Promise.resolve(END);
  }

  onEnd(part: Part, state: typeof PART_SUCCEEDED | typeof PART_FAILED): void {
    this.#queue.end(part, state);
    if (this.#queue.isReady) this.#schedule();
  }

  onFatalError(error: unknown): void {
    this.#fail(error);
  }

  readonly #onAbort = (): void => this.#fail(this.#operation.inputs.signal?.reason);

  /** Continues in a microtask, so that a payload contains the parts that end together. */
  #schedule(): void {
    if (this.#isScheduled || this.#call === undefined) return;
    this.#isScheduled = true;
    void RESOLVED.then(() => {
      this.#isScheduled = false;
      if (this.#call === undefined || this.#hasEnded) return;
      try {
        this.#continue();
      } catch (error) {
        // A function of the application that formats errors has thrown.
        this.#fail(error);
      }
    });
  }

  #continue(): void {
    if (!this.#hasStarted) {
      this.#hasStarted = true;
      this.#queue.start();
      return;
    }
    if (!this.#queue.isReady) return;
    this.#queue.write(this.#text);
    const { isComplete } = this.#queue;
    const payload = this.#text.take(!isComplete);
    if (isComplete) this.#end();
    if (payload !== undefined) this.#take()?.resolve({ done: false, value: payload });
  }

  #fail(reason: unknown): void {
    if (this.#hasEnded) return;
    this.#end(reason);
    const call = this.#take();
    if (call === undefined) this.#error = { reason };
    else call.reject(reason);
  }

  /** Stops the parts that still run. */
  #end(reason?: unknown): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#operation.inputs.signal?.removeEventListener('abort', this.#onAbort);
    this.#queue.cancel();
    this.#operation.finish(reason);
  }

  #take(): Call | undefined {
    const call = this.#call;
    this.#call = undefined;
    return call;
  }
}

function createCall(): Call {
  let resolve: Call['resolve'] = () => undefined;
  let reject: Call['reject'] = () => undefined;
  const promise = new Promise<Result>((onResult, onError) => {
    resolve = onResult;
    reject = onError;
  });
  return { promise, resolve, reject };
}
