import { type Attributes, type Context, context, type Span, trace } from '@opentelemetry/api';
import type { ExecutionObserver, ObservedOperation, OperationObserver } from '../../execution/observed.ts';
import type { ExecutionInputs } from '../../execution/types.ts';
import { errorType, recordErrors } from '../errors.ts';
import { readEpoch, reportFailure, safely, type Telemetry, toSpanTime } from '../telemetry.ts';
import type { Parent } from '../trace-context.ts';
import { variableAttributes } from './documents.ts';
import { ExecutionSpan } from './execution-span.ts';
import type { OperationInfo } from './operation-info.ts';

const REFUSED = 'GraphQL Operation';
const REFUSED_ATTRIBUTES = { 'graphql.processing.type': 'request' };
const NO_ATTRIBUTES: Attributes = {};

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
  readonly #epoch: number;
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
    this.#epoch = readEpoch(operation.started);
    const { kind, links } = parent;
    const attributes = info?.spanAttributes ?? REFUSED_ATTRIBUTES;
    this.#span = telemetry.tracer.startSpan(
      info?.spanName ?? REFUSED,
      { kind, links, attributes, startTime: toSpanTime(this.#epoch, operation.started) },
      parent.context,
    );
    this.#context = trace.setSpan(parent.context, this.#span);
    if (info !== undefined) info.active.value += 1;
  }

  /** The context of steps between arrival and execution, such as parsing. */
  get context(): Context {
    return this.#context;
  }

  run<T>(step: () => T): T {
    return context.with(this.#context, step);
  }

  executing(inputs: ExecutionInputs): ExecutionObserver | undefined {
    const { variables, spans } = this.#telemetry.settings;
    const info = this.#info as OperationInfo;
    const isEvent = info.type === 'subscription';
    if (!isEvent && variables === false && !spans.phases) return undefined;
    return safely(() => {
      if (variables !== false && !isEvent && this.#span.isRecording()) {
        this.#span.setAttributes(variableAttributes(inputs.variableValues, variables));
      }
      if (!isEvent && !spans.phases) return undefined;
      const parent = { context: this.#context, span: !isEvent || spans.events ? this.#span : undefined };
      return new ExecutionSpan(this.#telemetry, info, { ...parent, isEvent, event: inputs.rootValue });
    });
  }

  subscribed(): void {
    this.#isSubscribed = true;
    if (this.#info?.subscriptions !== undefined) this.#info.subscriptions.value += 1;
    this.#finish();
  }

  ended(): void {
    if (this.#isSubscribed && this.#info?.subscriptions !== undefined) this.#info.subscriptions.value -= 1;
    this.#finish();
  }

  /** Ends the span of the request. */
  #finish(): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    const info = this.#info;
    if (info !== undefined) info.active.value -= 1;
    const ended = performance.now();
    try {
      this.#record(ended);
    } catch (error) {
      reportFailure(error);
    }
    try {
      this.#span.end(toSpanTime(this.#epoch, ended));
    } catch (error) {
      reportFailure(error);
    }
  }

  #record(ended: number): void {
    const { metrics, settings, errorType: bound } = this.#telemetry;
    const { errors, started } = this.#operation;
    const type = errors.length === 0 ? undefined : errorType(errors);
    if (type !== undefined && this.#span.isRecording()) recordErrors(this.#span, type, errors);
    const attributes = this.#info?.metricAttributes ?? NO_ATTRIBUTES;
    metrics.requestDuration.record(
      (ended - started) / 1000,
      type === undefined ? attributes : { ...attributes, 'error.type': bound(type) },
      this.#context,
    );
    if (settings.errorCounts) metrics.errorCount.record(errors.length, attributes, this.#context);
  }
}
