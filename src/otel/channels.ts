import type { ObservedConnection, ParseEvent, ValidateEvent } from '../core/diagnostics.ts';
import type { ObservedOperation } from '../execution/observed/observed-operation.ts';
import type { DeliveryEvent, ObservedPublish } from '../pubsub/observed-publish.ts';
import type { ObservedRequest } from '../static/observed-request.ts';
import type { ObservedUpload } from '../uploads/observed-upload.ts';
import { createOperationInfo } from './operations/operation-info.ts';
import { OperationSpan } from './operations/operation-span.ts';
import { Phases } from './operations/phases.ts';
import { observeFile, observePublish, observeUpload, topicAttributes } from './requests.ts';
import { safely, secondsSince, type Telemetry } from './telemetry.ts';
import { parentOf, type UpgradeContexts, upgradeContext } from './trace-context.ts';

/** The functions that handle the messages of channels, by the name of the channel. */
export type Subscribers = readonly (readonly [channel: string, subscriber: (message: unknown) => void])[];

/** Creates the functions that turn messages into spans and metrics. */
export function createSubscribers(telemetry: Telemetry): Subscribers {
  const upgrades: UpgradeContexts = new WeakMap();
  const phases = new Phases(telemetry);
  return [
    on('graphql:operation', createOperationSubscriber(telemetry, phases, upgrades)),
    on<ParseEvent>('graphql:parse', (message) => phases.add('parse', message)),
    on<ValidateEvent>('graphql:validate', (message) => phases.add('validate', message)),
    on<ObservedConnection>('graphql:connection', (message) =>
      observeConnection(telemetry, message, upgrades),
    ),
    on<ObservedRequest>('static:request', (message) => observeFile(telemetry, message)),
    on<ObservedUpload>('uploads:request', (message) => observeUpload(telemetry, message)),
    on<ObservedPublish>('pubsub:publish', (message) => observePublish(telemetry, message)),
    on<DeliveryEvent>('pubsub:event', ({ topic, streams }) => {
      const name = telemetry.topic(topic);
      telemetry.metrics.deliveries.add(String(name), topicAttributes(name), streams);
    }),
  ];
}

function on<Message>(name: string, subscriber: (message: Message) => void): Subscribers[number] {
  return [`espalier:${name}`, (message) => safely(() => subscriber(message as Message))];
}

const HIT = { 'espalier.cache.name': 'documents', 'espalier.cache.hit': true };
const MISS = { 'espalier.cache.name': 'documents', 'espalier.cache.hit': false };

function createOperationSubscriber(
  telemetry: Telemetry,
  phases: Phases,
  upgrades: UpgradeContexts,
): (operation: ObservedOperation) => void {
  const infoOf = createOperationInfo(telemetry);
  return (operation) => {
    const { prepared } = operation;
    const info = prepared === undefined ? undefined : infoOf(prepared);
    const span = new OperationSpan(telemetry, operation, { info, parent: parentOf(operation, upgrades) });
    operation.observe(span);
    const isNew = phases.createSpans(operation, span.context);
    telemetry.metrics.cacheRequests.add(`documents ${!isNew}`, isNew ? MISS : HIT, 1);
  };
}

/** Measures a connection, and keeps the trace context of its upgrade request for its operations. */
function observeConnection(
  { metrics }: Telemetry,
  message: ObservedConnection,
  upgrades: UpgradeContexts,
): void {
  const { protocol, websocket } = message.connection;
  const headers = websocket?.request?.headers;
  const context = headers === undefined ? undefined : upgradeContext(headers);
  if (websocket !== undefined && context !== undefined) upgrades.set(websocket, context);
  message.onEnd(() => {
    safely(() =>
      metrics.connectionDuration.record(secondsSince(message.started), { 'espalier.protocol': protocol }),
    );
  });
}
