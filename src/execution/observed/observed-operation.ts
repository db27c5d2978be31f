import type { IncomingMessage } from 'node:http';
import type { WebSocketLike } from '../../../types/connect.ts';
import { notify } from '../../diagnostics/channel.ts';
import type { PreparedOperation, RequestError } from '../types.ts';
import { ObservedPrepared } from './observed-prepared.ts';
import { type ObservedResult, type OperationObserver, runWithin } from './observers.ts';
import { warnIfExecuteIsWrapped } from './replaced-execute.ts';

const NO_ERRORS: readonly unknown[] = [];
const NO_OBSERVERS: readonly OperationObserver[] = [];

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
  observers: readonly OperationObserver[] = NO_OBSERVERS;
  #hasEnded = false;

  constructor(origin: Origin) {
    this.transport = origin.transport;
    this.request = origin.request;
    this.socket = origin.socket;
    this.origin = origin;
  }

  /** The errors so far, before masking. Those of some results are created when they are read. */
  get errors(): readonly unknown[] {
    if (this.failures !== undefined) return this.failures;
    return this.result === undefined || this.result.kind === 'data' ? NO_ERRORS : this.result.errors;
  }

  /** Adds an observer. Subscribers call it while they handle the message. */
  observe(observer: OperationObserver): void {
    this.observers = this.observers.length === 0 ? [observer] : [...this.observers, observer];
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
    // No code of the application runs for a refused operation.
    if ('errors' in prepared) return step(prepared);
    return this.run(() => step(new ObservedPrepared(prepared, this)));
  }

  /** Runs a step of the operation within the steps of the observers. */
  run<T>(step: () => T): T {
    return runWithin(this.observers, step);
  }

  subscribed(): void {
    for (const observer of this.observers) notify(() => observer.subscribed?.());
  }

  fail(errors: readonly unknown[]): void {
    this.failures ??= errors;
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const observer of this.observers) notify(() => observer.ended?.());
  }
}

/** Returns the observed operation that has prepared an operation; undefined without subscribers. */
export const observedOf = (prepared: PreparedOperation): ObservedOperation | undefined =>
  prepared instanceof ObservedPrepared ? (prepared.observed as ObservedOperation) : undefined;
