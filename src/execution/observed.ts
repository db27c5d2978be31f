import type { IncomingMessage } from 'node:http';
import * as graphql from 'graphql';
import type { MaybePromise, OperationTransport, WebSocketLike } from '../../types/connect.ts';
import { notify, throwLater } from '../diagnostics/channels.ts';
import { caught, settle } from '../options/values.ts';
import { optionalExport } from './graphql-version.ts';
import type { ExecutionInputs, ExecutionOutcome, PreparedOperation, RequestError } from './types.ts';

const NO_ERRORS: readonly unknown[] = [];
const NO_OBSERVERS: readonly OperationObserver[] = [];

interface Origin {
  readonly transport: OperationTransport;
  /** The request; none over a socket. */
  readonly request?: IncomingMessage;
  readonly socket?: WebSocketLike;
  /** The payload of `connection_init`; none over HTTP. */
  readonly connectionParams?: Readonly<Record<string, unknown>> | undefined;
  /** The parameter `extensions` of the operation. */
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * One operation that subscribers of `espalier:graphql:operation` observe. It is created when the operation
 * arrives, and published when it is prepared or refused.
 */
export class ObservedOperation {
  /** The time of arrival, by `performance.now()`. */
  readonly started: number = performance.now();
  readonly transport: OperationTransport;
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
  /** The client that the operation was counted for, with the option `usage`. */
  client: { readonly name: string; readonly version: string | undefined } | undefined;
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
    if (prepared.kind === 'error') this.failures = prepared.errors;
    else this.prepared = prepared;
    warnIfExecuteIsWrapped();
    publish(this);
    this.origin = undefined;
    // No code of the application runs for a refused operation.
    if (prepared.kind === 'error') return step(prepared);
    const observed = { ...prepared, execute: (inputs: ExecutionInputs) => this.#execute(prepared, inputs) };
    return this.run(() => step(observed));
  }

  #execute(prepared: PreparedOperation, inputs: ExecutionInputs): MaybePromise<ExecutionOutcome> {
    const observers = this.#startExecution(inputs);
    const onResult = (outcome: ExecutionOutcome): ExecutionOutcome => {
      // The events of a subscription have their own observers, and it would keep their bodies in memory.
      if (prepared.operation.operation !== 'subscription') this.result = outcome;
      for (const observer of observers) notify(() => observer.ended?.(outcome));
      return outcome;
    };
    const onError = (error: unknown): never => {
      for (const observer of observers) notify(() => observer.ended?.(undefined, error));
      throw error;
    };
    const run = () =>
      settle(
        runWithin(observers, () => prepared.execute(inputs)),
        onResult,
      );
    return caught(run, onError);
  }

  #startExecution(inputs: ExecutionInputs): readonly ExecutionObserver[] {
    let observers: ExecutionObserver[] | undefined;
    for (const observer of this.observers) {
      try {
        const execution = observer.executing?.(inputs);
        if (execution === undefined) continue;
        observers ??= [];
        observers.push(execution);
      } catch (error) {
        throwLater(error);
      }
    }
    return observers ?? NO_EXECUTION_OBSERVERS;
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

const NO_EXECUTION_OBSERVERS: readonly ExecutionObserver[] = [];

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
function runWithin<T>(observers: readonly Observer[], step: () => T): T {
  const [first] = observers;
  if (first === undefined) return step();
  if (observers.length === 1) return first.run === undefined ? step() : first.run(step);
  return observers.reduceRight<() => T>(
    (inner, observer) => (observer.run === undefined ? inner : () => observer.run?.(inner) as T),
    step,
  )();
}

/** If graphql is a CommonJS module, only its default export reflects later changes. */
const COMMON_JS = optionalExport('default') as { execute?: unknown } | undefined;
const currentExecute = (): unknown => COMMON_JS?.execute ?? graphql.execute;

const EXECUTE_AT_START = currentExecute();
/** Properties that common libraries set on a function that wraps another one. */
const WRAPPER_MARKS = ['__wrapped', '__original', '__unwrap', '__NR_original'];
/** The function of the last check. */
let checked: unknown;
let hasWarned = false;

/**
 * Warns once per process if a library has replaced `execute` of graphql-js, as some tracers do: the compiled
 * engine does not call it, so the library would not see those operations.
 */
export function warnIfExecuteIsWrapped(): void {
  const execute = currentExecute();
  if (execute === checked) return;
  checked = execute;
  const isMarked = typeof execute === 'function' && WRAPPER_MARKS.some((mark) => mark in execute);
  if (hasWarned || (execute === EXECUTE_AT_START && !isMarked)) return;
  hasWarned = true;
  process.emitWarning(
    'The function execute of graphql has been replaced, probably by a tracer such as ' +
      "@opentelemetry/instrumentation-graphql. espalier's compiled engine does not call it, so operations are missing in " +
      "its traces. Use espalier/otel instead (see https://github.com/espalier-js/espalier/blob/main/docs/observability.md), or set the option engine: 'graphql-js'.",
    { code: 'ESPALIER_EXECUTE_REPLACED' },
  );
}
