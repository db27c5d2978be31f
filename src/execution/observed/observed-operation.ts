import type { IncomingMessage } from 'node:http';
import type { MaybePromise, WebSocketLike } from '../../../types/connect.ts';
import { notify } from '../../diagnostics/channel.ts';
import {
  type ExecutionInputs,
  type ExecutionOutcome,
  isThenable,
  type PreparedOperation,
  type RequestError,
} from '../types.ts';
import { warnIfExecuteIsWrapped } from './replaced-execute.ts';

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

/** The origin of an operation. */
interface Origin {
  readonly transport: 'http' | 'websocket';
  /** The request; undefined over a socket. */
  readonly request: IncomingMessage | undefined;
  readonly socket: WebSocketLike | undefined;
  /** The payload of `connection_init`; undefined over HTTP. */
  readonly connectionParams: Readonly<Record<string, unknown>> | undefined;
  /** The parameter `extensions` of the operation. */
  readonly extensions: Readonly<Record<string, unknown>> | undefined;
}

/**
 * One operation that subscribers of `espalier:graphql:operation` observe. It is created when the operation
 * arrives, and published when it is prepared or refused.
 */
export class ObservedOperation {
  /** The time of arrival, by `performance.now()`. */
  readonly started: number = performance.now();
  readonly transport: 'http' | 'websocket';
  readonly request: IncomingMessage | undefined;
  readonly socket: WebSocketLike | undefined;
  /** The origin, until the message was published. */
  origin: Origin | undefined;
  /** The operation; undefined if it was refused. */
  prepared: PreparedOperation | undefined;
  /** The result of the last execution. */
  result: ObservedResult | undefined;
  /** The errors with which the operation was refused or failed, before masking. */
  failures: readonly unknown[] | undefined;
  readonly #observers: OperationObserver[] = [];
  #hasEnded = false;

  constructor(origin: Origin) {
    this.transport = origin.transport;
    this.request = origin.request;
    this.socket = origin.socket;
    this.origin = origin;
  }

  /** Adds an observer. Subscribers call it while they handle the message. */
  observe(observer: OperationObserver): void {
    this.#observers.push(observer);
  }

  /**
   * Calls `publish`, and `step` within the steps of the observers. The operation that `step` gets reports its
   * executions.
   */
  begin<T>(
    prepared: PreparedOperation | RequestError,
    publish: (message: this) => void,
    step: (observed: PreparedOperation | RequestError) => T,
  ): T {
    if ('errors' in prepared) this.failures = prepared.errors;
    else this.prepared = prepared;
    warnIfExecuteIsWrapped();
    publish(this);
    this.origin = undefined;
    return this.run(() => step('errors' in prepared ? prepared : this.#observed(prepared)));
  }

  /** Runs a step of the operation within the steps of the observers. */
  run<T>(step: () => T): T {
    return runWithin(this.#observers, step);
  }

  subscribed(): void {
    for (const observer of this.#observers) notify(() => observer.subscribed?.());
  }

  fail(errors: readonly unknown[]): void {
    this.failures ??= errors;
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const observer of this.#observers) notify(() => observer.ended?.());
  }

  #observed(prepared: PreparedOperation): ObservedPrepared {
    return { ...prepared, observed: this, execute: (inputs) => this.#execute(prepared, inputs) };
  }

  #execute(
    { execute, operation }: PreparedOperation,
    inputs: ExecutionInputs,
  ): MaybePromise<ExecutionOutcome> {
    const observers: ExecutionObserver[] = [];
    for (const observer of this.#observers) {
      notify(() => {
        const execution = observer.executing?.(inputs);
        if (execution !== undefined) observers.push(execution);
      });
    }
    const onResult = (outcome: ExecutionOutcome): ExecutionOutcome => {
      // The events of a subscription have their own observers, and it would keep their bodies in memory.
      if (operation.operation !== 'subscription') this.result = outcome;
      for (const observer of observers) notify(() => observer.ended?.(outcome));
      return outcome;
    };
    const onError = (error: unknown): never => {
      for (const observer of observers) notify(() => observer.ended?.(undefined, error));
      throw error;
    };
    let running: MaybePromise<ExecutionOutcome>;
    try {
      running = runWithin(observers, () => execute(inputs));
    } catch (error) {
      return onError(error);
    }
    return isThenable(running) ? running.then(onResult, onError) : onResult(running);
  }
}

interface ObservedPrepared extends PreparedOperation {
  readonly observed: ObservedOperation;
}

/** Returns the observed operation that has prepared an operation; undefined without subscribers. */
export const observedOf = (prepared: PreparedOperation): ObservedOperation | undefined =>
  (prepared as Partial<ObservedPrepared>).observed;

/** Runs a step within the steps of all observers; the first observer's is the outermost. */
function runWithin<T>(observers: readonly Observer[], step: () => T): T {
  const [first] = observers;
  if (first === undefined) return step();
  if (observers.length === 1) return first.run === undefined ? step() : first.run(step);
  return observers.reduceRight<() => T>(
    (inner, observer) => (observer.run === undefined ? inner : () => observer.run?.(inner) as T),
    step,
  )();
}
