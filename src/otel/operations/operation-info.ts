import type { Attributes } from '@opentelemetry/api';
import type { PreparedOperation } from '../../execution/types.ts';
import type { Count } from '../metrics.ts';
import type { Telemetry } from '../telemetry.ts';
import { documentHash, documentText } from './documents.ts';

/** The parts of spans and metrics that are equal for all requests with one operation. */
export interface OperationInfo {
  readonly type: string;
  readonly spanName: string;
  readonly spanAttributes: Attributes;
  /** The attributes of spans of an execution, or of an event. */
  readonly executionAttributes: Attributes;
  /** The active requests with the type. */
  readonly active: Count;
  /** The attributes of metrics that may have the name. */
  readonly metricAttributes: Attributes;
  readonly executionMetricAttributes: Attributes;
  /** Like `metricAttributes`, for metrics of subscriptions only. */
  readonly nameAttributes: Attributes;
  /** The active subscriptions with the name; undefined for queries and mutations. */
  readonly subscriptions: Count | undefined;
}

/** Returns the function that creates the info of an operation once. */
export function createOperationInfo(telemetry: Telemetry): (prepared: PreparedOperation) => OperationInfo {
  const known = new WeakMap<object, OperationInfo>();
  return (prepared) => {
    let info = known.get(prepared.operation);
    if (info === undefined) {
      info = createInfo(prepared, telemetry);
      known.set(prepared.operation, info);
    }
    return info;
  };
}

function createInfo(prepared: PreparedOperation, telemetry: Telemetry): OperationInfo {
  const { metrics, settings } = telemetry;
  const type = prepared.operation.operation;
  const name = prepared.operation.name?.value;
  const bounded = telemetry.operationName(name);
  const typeAttributes = { 'graphql.operation.type': type };
  const nameAttributes = bounded === undefined ? {} : { 'graphql.operation.name': bounded };
  const identity: Attributes = { ...typeAttributes };
  if (name !== undefined) identity['graphql.operation.name'] = name;
  const spanAttributes: Attributes = {
    'graphql.processing.type': 'request',
    ...identity,
    'graphql.document.hash': documentHash(prepared.source),
  };
  if (settings.documents) spanAttributes['graphql.document'] = documentText(prepared.source);
  const metricAttributes = { ...typeAttributes, ...nameAttributes };
  const executionAttributes = { 'graphql.processing.type': 'execute', ...identity };
  return {
    type,
    spanName: bounded === undefined || bounded !== name ? type : `${type} ${name}`,
    spanAttributes,
    executionAttributes,
    active: metrics.activeRequests.of(typeAttributes),
    metricAttributes,
    executionMetricAttributes: { 'graphql.processing.type': 'execute', ...metricAttributes },
    nameAttributes,
    subscriptions: type === 'subscription' ? metrics.activeSubscriptions.of(nameAttributes) : undefined,
  };
}
