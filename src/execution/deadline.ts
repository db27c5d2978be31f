import { GraphQLError } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { createDeadlines, type Deadlines } from '../http/timers.ts';
import { duration, type Rule } from '../options/rules.ts';
import {
  type Complete,
  type EngineSettings,
  type ErrorOrigin,
  type ExecuteOperation,
  type ExecutionCaching,
  type ExecutionInputs,
  type ExecutionOutcome,
  type IncrementalFormat,
  isThenable,
  type PreparedOperation,
  type RemainingResults,
  withRest,
} from './types.ts';

export const DEFAULT_TIMEOUT = 60_000;
const TIMEOUT_STATUS = 504;

const isMilliseconds = duration(DEFAULT_TIMEOUT, { to: Number.POSITIVE_INFINITY });

/** The rule of the option `timeout`, whose resolved value is `Infinity` if it is off. */
export const timeoutRule: Rule<number> = {
  ...isMilliseconds,
  accepted:
    "a whole number of milliseconds from 1, a string such as '5s' (ms, s, m, h, d), or false for no limit",
  read: (value) => (value === false ? Number.POSITIVE_INFINITY : isMilliseconds.read?.(value)),
};

const timeouts = new WeakSet<object>();

/** Whether an error says that the time of an operation has elapsed. */
export const isTimeout = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && timeouts.has(error);

/** The HTTP status of an error that ended an operation before its execution. */
export const statusOfRefusal = (error: unknown): number => (isTimeout(error) ? TIMEOUT_STATUS : 400);

/** Whether the time of an execution has elapsed. */
export const hasTimedOut = ({ kind, status }: ExecutionOutcome): boolean =>
  kind === 'refused' && status === TIMEOUT_STATUS;

function timeoutError(): GraphQLError {
  const error = new GraphQLError('The operation took too long', {
    extensions: { code: 'OPERATION_TIMEOUT' },
  });
  timeouts.add(error);
  return error;
}

interface Services extends Pick<EngineSettings, 'formatErrors'> {
  /** Reports an error of the server to the operator. */
  report(error: Error, origin: ErrorOrigin | undefined): void;
}

/** Creates the limit of one core; undefined if the time of operations is not limited. */
export const createTimeLimit = (milliseconds: number, services: Services): TimeLimit | undefined =>
  milliseconds === Number.POSITIVE_INFINITY ? undefined : new TimeLimit(milliseconds, services);

/** The time that each step of an operation may take. Steps that return no promise cost nothing. */
export class TimeLimit {
  readonly milliseconds: number;
  readonly #services: Services;
  readonly #deadlines: Deadlines;

  constructor(milliseconds: number, services: Services) {
    this.milliseconds = milliseconds;
    this.#services = services;
    this.#deadlines = createDeadlines(milliseconds);
  }

  /**
   * Rejects when a step is too slow, such as the function of the option `context`. `onTimeout` is called then, and
   * `discard` with a value that arrives later.
   */
  bound<T>(
    value: MaybePromise<T>,
    origin: ErrorOrigin | undefined,
    { subject, onTimeout, discard }: LateSteps<T> = {},
  ): MaybePromise<T> {
    if (!isThenable(value)) return value;
    return new Promise((resolve, reject) => {
      const expire = (): void => {
        reject(this.createError(origin, subject));
        onTimeout?.();
        value.then(discard, ignore);
      };
      this.#deadlines.set(expire);
      const clear = (): void => this.#deadlines.clear(expire);
      value.then(clear, clear);
      value.then(resolve, reject);
    });
  }

  /** Returns `execute` of an operation, whose executions end with an error when the time has elapsed. */
  boundExecution({ operation, incremental, execute }: PreparedOperation): ExecuteOperation {
    const invalidates = operation.operation === 'mutation';
    // A live query is a stream of results without an end.
    const boundsRest = incremental !== undefined;
    return (given) => {
      const inputs = new TimedInputs(given, invalidates);
      const running = execute(inputs);
      const takesTime = isThenable(running) || (boundsRest && running.rest !== undefined);
      return takesTime ? this.#bound(Promise.resolve(running), inputs, boundsRest) : running;
    };
  }

  #bound(
    running: Promise<ExecutionOutcome>,
    inputs: TimedInputs,
    boundsRest: boolean,
  ): Promise<ExecutionOutcome> {
    return new Promise((resolve, reject) => {
      let expire = (): void => {
        running.then(
          (outcome) => inputs.discard(outcome),
          () => inputs.discard(),
        );
        const { origin } = inputs;
        // The response of a mutation is sent when the stored results of its tags are removed.
        inputs
          .expired()
          .then(() => resolve(this.#outcome(origin)))
          .catch(reject);
      };
      const onTimeout = (): void => expire();
      const clear = (): void => this.#deadlines.clear(onTimeout);
      this.#deadlines.set(onTimeout);
      running.then(
        (outcome) => {
          if (inputs.isOver) return;
          if (!boundsRest || outcome.rest === undefined) {
            clear();
            resolve(outcome);
            return;
          }
          const rest = this.#timedRest(outcome.rest, inputs, clear);
          expire = rest.expire;
          resolve(withRest(outcome, rest));
        },
        (error: unknown) => {
          clear();
          // An execution that was aborted may reject before its stored results are removed.
          if (!inputs.isOver) reject(error);
        },
      );
    });
  }

  /** Returns payloads that end with an error after `expire`. `clear` is called when they have ended before. */
  #timedRest(
    rest: RemainingResults,
    inputs: TimedInputs,
    clear: () => void,
  ): RemainingResults & { readonly expire: () => void } {
    let error: GraphQLError | undefined;
    let fail = (_error: unknown): void => undefined;
    return {
      get openIds() {
        return rest.openIds;
      },
      next() {
        if (error !== undefined) return Promise.reject(error);
        return new Promise((resolve, reject) => {
          fail = reject;
          rest.next().then(
            (item) => {
              if (item.done === true) clear();
              resolve(item);
            },
            (reason: unknown) => {
              clear();
              reject(reason);
            },
          );
        });
      },
      return() {
        clear();
        return rest.return();
      },
      expire: () => {
        error = this.createError(inputs.origin);
        fail(error);
        void inputs.expired();
        rest.return().catch(ignore);
      },
    };
  }

  #outcome(origin: ErrorOrigin | undefined): ExecutionOutcome {
    const error = this.createError(origin);
    const formatted = this.#services.formatErrors([error], origin);
    return {
      kind: 'refused',
      body: JSON.stringify({ errors: formatted }),
      errors: [error],
      status: TIMEOUT_STATUS,
    };
  }

  /** Reports the timeout, and returns the error for the client. */
  readonly createError = (origin: ErrorOrigin | undefined, subject = 'operation'): GraphQLError => {
    if (origin?.aborted !== true) {
      const name = origin?.operationName === undefined ? '' : ` "${origin.operationName}"`;
      const message = `The ${subject}${name} was not complete after ${this.milliseconds} ms (option "timeout")`;
      this.#services.report(new Error(message), origin);
    }
    return timeoutError();
  };
}

/** Returns a value within the time, if it is limited. */
export const inTime = <T>(
  limit: TimeLimit | undefined,
  value: MaybePromise<T>,
  origin: ErrorOrigin | undefined,
  steps?: LateSteps<T>,
): MaybePromise<T> => (limit === undefined ? value : limit.bound(value, origin, steps));

/** What is done when a step is too slow. */
interface LateSteps<T> {
  /** What the report says is not complete. */
  readonly subject?: string;
  readonly onTimeout?: () => void;
  readonly discard?: (value: T) => void;
}

const ignore = (): void => undefined;

/** The inputs of an execution, with a signal that is also aborted when the time has elapsed. */
class TimedInputs implements Complete<ExecutionInputs> {
  /** Each resolver gets it. */
  readonly contextValue: unknown;
  /** The time has elapsed, so that nobody waits for the result. */
  isOver = false;
  readonly #given: ExecutionInputs;
  readonly #invalidates: boolean;
  #isEndless = false;
  #controller: AbortController | undefined;

  constructor(given: ExecutionInputs, invalidates: boolean) {
    this.contextValue = given.contextValue;
    this.#given = given;
    this.#invalidates = invalidates;
  }

  get rootValue(): unknown {
    return this.#given.rootValue;
  }
  get variableValues(): Record<string, unknown> | undefined {
    return this.#given.variableValues;
  }
  get acceptsStreams(): boolean {
    return this.#given.acceptsStreams === true;
  }
  get incremental(): IncrementalFormat | undefined {
    return this.#given.incremental;
  }
  set incremental(format: IncrementalFormat | undefined) {
    this.#given.incremental = format;
  }
  get outlivesClient(): boolean {
    return this.#isEndless;
  }
  /** Set by an execution that must not be aborted, neither by the client nor by the time. */
  set outlivesClient(outlives: boolean) {
    this.#isEndless = outlives;
    this.#given.outlivesClient = outlives;
  }
  get index(): ExecutionInputs['index'] {
    return this.#given.index;
  }
  get caching(): ExecutionCaching | undefined {
    return this.#given.caching;
  }
  set caching(caching: ExecutionCaching | undefined) {
    this.#given.caching = caching;
  }
  get caller(): ExecutionInputs['caller'] {
    return this.#given.caller;
  }
  get exchange(): ExecutionInputs['exchange'] {
    return this.#given.exchange;
  }
  get params(): ExecutionInputs['params'] {
    return this.#given.params;
  }
  get refused(): ExecutionInputs['refused'] {
    return this.#given.refused;
  }
  get access(): ExecutionInputs['access'] {
    return this.#given.access;
  }
  set access(access: ExecutionInputs['access']) {
    this.#given.access = access;
  }
  get connectionParams(): Readonly<Record<string, unknown>> | undefined {
    return this.#given.connectionParams;
  }
  get isShared(): boolean {
    return this.#given.isShared === true;
  }

  get signal(): AbortSignal | undefined {
    if (this.#isEndless) return undefined;
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      const { signal } = this.#given;
      const onAbort = (): void => controller.abort(signal?.reason);
      if (this.isOver) controller.abort(timeoutReason());
      else if (signal?.aborted === true) onAbort();
      else signal?.addEventListener('abort', onAbort, { once: true });
    }
    return this.#controller.signal;
  }

  setHeader(name: string, value: string): void {
    if (!this.isOver) this.#given.setHeader?.(name, value);
  }

  get origin(): ErrorOrigin | undefined {
    const { origin } = this.#given;
    // Resolvers fail because they were aborted, which is not reported.
    return this.isOver && origin !== undefined ? { ...origin, aborted: true } : origin;
  }

  /** Aborts the resolvers. Resolves when the stored results of a mutation's tags are removed. */
  async expired(): Promise<void> {
    this.isOver = true;
    this.#controller?.abort(timeoutReason());
    if (this.#invalidates) await this.caching?.invalidate();
  }

  /** Releases a result that has arrived too late. A mutation may have changed more data meanwhile. */
  discard(outcome?: ExecutionOutcome): void {
    outcome?.release?.();
    outcome?.rest?.return().catch(ignore);
    if (this.#invalidates) void this.caching?.invalidate();
  }
}

const timeoutReason = (): DOMException => new DOMException('The operation took too long', 'TimeoutError');
