import type { InspectFigures, Latencies, OperationFigures } from '../../types/inspect.ts';
import type {
  ExecutionObserver,
  ObservedOperation,
  ObservedResult,
  OperationObserver,
} from '../execution/observed.ts';
import type { PreparedOperation } from '../execution/types.ts';
import { LatencyWindow, RateHistory } from './latency.ts';
import { operationName } from './operation-names.ts';

type OperationType = OperationFigures['type'];

/** The figures of one operation. */
class Entry {
  readonly type: OperationType;
  readonly name: string;
  readonly window: LatencyWindow = new LatencyWindow();
  total = 0;

  constructor(type: OperationType, name: string) {
    this.type = type;
    this.name = name;
  }
}

/** Receives the errors of operations. */
type OnErrors = (errors: readonly unknown[], operation: string | undefined) => void;

/** The figures of all operations. The number of operations with their own figures is bounded. */
export class OperationCounters {
  readonly #maxOperations: number;
  readonly #onErrors: OnErrors;
  readonly #entries = new Map<string, Entry>();
  readonly #others = new Entry('other', 'other operations');
  readonly #all = new LatencyWindow();
  readonly #requests = new RateHistory();
  readonly #errors = new RateHistory();
  #total = 0;
  #active = 0;

  constructor(maxOperations: number, onErrors: OnErrors) {
    this.#maxOperations = maxOperations;
    this.#onErrors = onErrors;
  }

  /** Observes an operation: its duration, or the durations of its events. */
  observe(operation: ObservedOperation): void {
    this.#active++;
    operation.observe(new OperationWatch(this, operation));
  }

  /** Counts the end of an operation. */
  onEnd(operation: ObservedOperation): void {
    this.#active--;
    const { prepared, errors } = operation;
    // The events of a subscription are counted instead of the subscription, unless it was refused.
    if (prepared?.operation.operation === 'subscription' && errors.length === 0) return;
    this.add(prepared, performance.now() - operation.started, errors.length > 0);
    if (errors.length > 0) this.addErrors(errors, prepared);
  }

  /** Adds a duration in milliseconds. */
  add(prepared: PreparedOperation | undefined, duration: number, isError: boolean): void {
    const now = performance.now();
    const entry = this.#entryOf(prepared);
    entry.total++;
    this.#total++;
    entry.window.add(duration, isError, now);
    this.#all.add(duration, isError, now);
    this.#requests.add(now);
    if (isError) this.#errors.add(now);
  }

  /** Counts the errors of an operation or of an event. */
  addErrors(errors: readonly unknown[], prepared: PreparedOperation | undefined): void {
    this.#onErrors(errors, prepared === undefined ? undefined : operationName(prepared.operation));
  }

  read(): Pick<InspectFigures, 'requests' | 'history' | 'operations'> {
    const now = performance.now();
    const entries = [...this.#entries.values(), this.#others].filter(({ total }) => total > 0);
    const operations = entries.map(({ type, name, total, window }): OperationFigures => {
      const { count: requests, ...latencies } = window.read(now);
      return { type, name, total, requests, ...latencies };
    });
    operations.sort((a, b) => b.requests - a.requests || b.total - a.total);
    const all: Latencies & { count: number; errors: number } = this.#all.read(now);
    return {
      requests: { ...all, total: this.#total, active: this.#active },
      history: { requests: this.#requests.read(now), errors: this.#errors.read(now) },
      operations,
    };
  }

  #entryOf(prepared: PreparedOperation | undefined): Entry {
    if (prepared === undefined) return this.#entry('other', 'refused before execution');
    return this.#entry(prepared.operation.operation, operationName(prepared.operation));
  }

  #entry(type: OperationType, name: string): Entry {
    const key = `${type} ${name}`;
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      if (this.#entries.size >= this.#maxOperations) return this.#others;
      entry = new Entry(type, name);
      this.#entries.set(key, entry);
    }
    return entry;
  }
}

/** Observes one operation. */
class OperationWatch implements OperationObserver {
  readonly #counters: OperationCounters;
  readonly #operation: ObservedOperation;

  constructor(counters: OperationCounters, operation: ObservedOperation) {
    this.#counters = counters;
    this.#operation = operation;
  }

  executing(): ExecutionObserver | undefined {
    const { prepared } = this.#operation;
    if (prepared?.operation.operation !== 'subscription') return undefined;
    const started = performance.now();
    return {
      ended: (result: ObservedResult | undefined, error?: unknown) => {
        const errors = result === undefined ? [error] : result.kind === 'data' ? [] : result.errors;
        this.#counters.add(prepared, performance.now() - started, errors.length > 0);
        if (errors.length > 0) this.#counters.addErrors(errors, prepared);
      },
    };
  }

  ended(): void {
    this.#counters.onEnd(this.#operation);
  }
}
