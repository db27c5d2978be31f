import { type Context, context, type Span, trace } from '@opentelemetry/api';
import type {
  ExecutionObserver,
  ObservedOperation,
  OperationObserver,
} from '../../execution/observed/observed-operation.ts';
import type { ExecutionInputs } from '../../execution/types.ts';
import { errorType, recordErrors } from '../errors.ts';
import { safely, type Telemetry } from '../telemetry.ts';
import type { Parent } from '../trace-context.ts';
import { variableAttributes } from './documents.ts';
import { ExecutionSpan } from './execution-span.ts';
import type { OperationInfo } from './operation-info.ts';

const REFUSED = 'GraphQL Operation';
const REFUSED_ATTRIBUTES = { 'graphql.processing.type': 'request' };
const NO_ERRORS: readonly unknown[] = [];

/**
 * The span and the metrics of one operation. The span of a subscription ends when its source stream is open,
 * as the semantic conventions allow: it may stay open for days.
 */
export class OperationSpan implements OperationObserver {
  readonly #telemetry: Telemetry;
  readonly #operation: ObservedOperation;
  /** Undefined if the operation was refused before it was prepared. */
  readonly #info: OperationInfo | undefined;
  readonly #span: Span;
  readonly #context: Context;
  #isFinished = false;
  #isSubscribed = false;

  constructor(
    telemetry: Telemetry,
    operation: ObservedOperation,
    { info, parent }: { info: OperationInfo | undefined; parent: Parent },
  ) {
    this.#telemetry = telemetry;
    this.#operation = operation;
    this.#info = info;
    const { kind, links } = parent;
    const attributes = info?.spanAttributes ?? REFUSED_ATTRIBUTES;
    this.#span = telemetry.tracer.startSpan(
      info?.spanName ?? REFUSED,
      { kind, links, attributes, startTime: operation.started },
      parent.context,
    );
    this.#context = trace.setSpan(parent.context, this.#span);
    if (info !== undefined) telemetry.metrics.activeRequests.add(info.type, info.typeAttributes, 1);
  }

  /** The context of steps between arrival and execution, such as parsing. */
  get context(): Context {
    return this.#context;
  }

  run<T>(step: () => T): T {
    return context.with(this.#context, step);
  }

  executing(inputs: ExecutionInputs): ExecutionObserver | undefined {
    return safely(() => {
      const info = this.#info as OperationInfo;
      const { variables, spans } = this.#telemetry.settings;
      const isEvent = info.type === 'subscription';
      if (variables !== false && !isEvent && this.#span.isRecording()) {
        this.#span.setAttributes(variableAttributes(inputs.variableValues, variables));
      }
      const hasSpan = isEvent ? spans.events : spans.phases;
      const parent = { context: this.#context, span: hasSpan ? this.#span : undefined };
      return new ExecutionSpan(this.#telemetry, info, { ...parent, isEvent, event: inputs.rootValue });
    });
  }

  subscribed(): void {
    safely(() => {
      this.#isSubscribed = true;
      this.#countSubscription(1);
      this.#finish();
    });
  }

  ended(): void {
    safely(() => {
      if (this.#isSubscribed) this.#countSubscription(-1);
      this.#finish();
    });
  }

  /** Ends the span of the request. */
  #finish(): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    const { metrics } = this.#telemetry;
    const info = this.#info;
    const errors = this.#errors();
    const type = errors.length === 0 ? undefined : (errorType(errors) as string);
    if (type !== undefined && this.#span.isRecording()) recordErrors(this.#span, type, errors);
    // The API has no clock: a number below the time of the start is relative to it.
    const ended = performance.now();
    this.#span.end(ended);
    const attributes = info?.metricAttributes ?? {};
    metrics.requestDuration.record(
      (ended - this.#operation.started) / 1000,
      type === undefined ? attributes : { ...attributes, 'error.type': this.#telemetry.errorType(type) },
    );
    metrics.errorCount.record(errors.length, attributes);
    if (info !== undefined) metrics.activeRequests.add(info.type, info.typeAttributes, -1);
  }

  #errors(): readonly unknown[] {
    const { failures, result } = this.#operation;
    if (failures !== undefined) return failures;
    // The errors of some results are created when they are read.
    return result === undefined || result.kind === 'data' ? NO_ERRORS : result.errors;
  }

  #countSubscription(change: 1 | -1): void {
    const { nameAttributes } = this.#info as OperationInfo;
    const key = String(nameAttributes['graphql.operation.name']);
    this.#telemetry.metrics.activeSubscriptions.add(key, nameAttributes, change);
  }
}
