import type { ExecutionInputs, ExecutionOutcome } from '../types.ts';

/** A part of the work of an operation, as a subscriber observes it. */
interface Observer {
  /**
   * Runs a step, for example in an asynchronous context. Must call `step` once, synchronously, and return its
   * result.
   */
  run?<T>(step: () => T): T;
}

/** Observes one execution: of an operation, or of one event of a subscription. */
export interface ExecutionObserver extends Observer {
  /** Called with the result, or with the error that the execution threw. */
  ended?(result: ObservedResult | undefined, error?: unknown): void;
}

/** Observes one operation. */
export interface OperationObserver extends Observer {
  /** Called before the operation, or an event of its subscription, is executed; also after `ended`. */
  executing?(inputs: ExecutionInputs): ExecutionObserver | undefined;
  /** Called when the source stream of a subscription is open. */
  subscribed?(): void;
  /** Called once, when the operation has its last result or was stopped. */
  ended?(): void;
}

/** The result of an execution without its body, which may be in a buffer that is used again. */
export type ObservedResult = Pick<ExecutionOutcome, 'kind' | 'errors'>;

/** Runs a step within the steps of all observers; the first observer's is the outermost. */
export function runWithin<T>(observers: readonly Observer[], step: () => T): T {
  const [first] = observers;
  if (first === undefined) return step();
  if (observers.length === 1) return first.run === undefined ? step() : first.run(step);
  return observers.reduceRight<() => T>(
    (inner, observer) => (observer.run === undefined ? inner : () => observer.run?.(inner) as T),
    step,
  )();
}
