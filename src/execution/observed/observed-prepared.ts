import type { MaybePromise } from '../../../types/connect.ts';
import { notify, throwLater } from '../../diagnostics/channel.ts';
import { type ExecutionInputs, type ExecutionOutcome, isThenable, type PreparedOperation } from '../types.ts';
import {
  type ExecutionObserver,
  type ObservedResult,
  type OperationObserver,
  runWithin,
} from './observers.ts';

/** The operation that gets the results of its executions. */
interface ResultReceiver {
  readonly observers: readonly OperationObserver[];
  result: ObservedResult | undefined;
}

/** Has all members of another type, also those that are optional there. */
type Complete<T> = { [Name in keyof Required<T>]: T[Name] };

const NO_OBSERVERS: readonly ExecutionObserver[] = [];

/** A prepared operation of one request, which reports its executions. */
export class ObservedPrepared implements Complete<PreparedOperation> {
  readonly schema: PreparedOperation['schema'];
  readonly source: PreparedOperation['source'];
  readonly document: PreparedOperation['document'];
  readonly operation: PreparedOperation['operation'];
  readonly cost: PreparedOperation['cost'];
  readonly maxErrors: PreparedOperation['maxErrors'];
  readonly price: PreparedOperation['price'];
  readonly incremental: PreparedOperation['incremental'];
  readonly cachePolicy: PreparedOperation['cachePolicy'];
  readonly observed: ResultReceiver;
  readonly #prepared: PreparedOperation;

  constructor(prepared: PreparedOperation, observed: ResultReceiver) {
    this.schema = prepared.schema;
    this.source = prepared.source;
    this.document = prepared.document;
    this.operation = prepared.operation;
    this.cost = prepared.cost;
    this.maxErrors = prepared.maxErrors;
    this.price = prepared.price;
    this.incremental = prepared.incremental;
    this.cachePolicy = prepared.cachePolicy;
    this.observed = observed;
    this.#prepared = prepared;
  }

  execute(inputs: ExecutionInputs): MaybePromise<ExecutionOutcome> {
    const prepared = this.#prepared;
    const observers = this.#startExecution(inputs);
    if (observers.length === 0) {
      const outcome = prepared.execute(inputs);
      return isThenable(outcome) ? outcome.then((settled) => this.#keep(settled)) : this.#keep(outcome);
    }
    const onResult = (outcome: ExecutionOutcome): ExecutionOutcome => {
      this.#keep(outcome);
      for (const observer of observers) notify(() => observer.ended?.(outcome));
      return outcome;
    };
    const onError = (error: unknown): never => {
      for (const observer of observers) notify(() => observer.ended?.(undefined, error));
      throw error;
    };
    let running: MaybePromise<ExecutionOutcome>;
    try {
      running = runWithin(observers, () => prepared.execute(inputs));
    } catch (error) {
      return onError(error);
    }
    return isThenable(running) ? running.then(onResult, onError) : onResult(running);
  }

  #keep(outcome: ExecutionOutcome): ExecutionOutcome {
    // The events of a subscription have their own observers, and it would keep their bodies in memory.
    if (this.operation.operation !== 'subscription') this.observed.result = outcome;
    return outcome;
  }

  /** Returns the observers of one execution. */
  #startExecution(inputs: ExecutionInputs): readonly ExecutionObserver[] {
    let observers: ExecutionObserver[] | undefined;
    for (const observer of this.observed.observers) {
      try {
        const execution = observer.executing?.(inputs);
        if (execution === undefined) continue;
        observers ??= [];
        observers.push(execution);
      } catch (error) {
        throwLater(error);
      }
    }
    return observers ?? NO_OBSERVERS;
  }
}
