import type { ObservedConnection, ParseEvent, ValidateEvent } from '../core/diagnostics.ts';
import type { ObservedOperation } from '../execution/observed.ts';
import type { DeliveryEvent, ObservedPublish } from '../pubsub/observed-publish.ts';
import type { ObservedUpload } from '../uploads/receive.ts';
import { createOperationInfo } from './operations/operation-info.ts';
import { OperationSpan } from './operations/operation-span.ts';
import { Phases } from './operations/phases.ts';
import { createFileObserver, observeUpload } from './requests.ts';
import { safely, secondsSince, type Telemetry } from './telemetry.ts';
import { createTopics } from './topics.ts';
import { parentOf, type UpgradeContexts, upgradeContext } from './trace-context.ts';

/** The functions that handle the messages of channels, by the name of the channel. */
export type Subscribers = readonly (readonly [channel: string, subscriber: (message: unknown) => void])[];

/** Creates the functions that turn messages into spans and metrics. */
export function createSubscribers(telemetry: Telemetry): Subscribers {
  const upgrades: UpgradeContexts = new WeakMap();
  const phases = new Phases(telemetry);
  const topics = createTopics(telemetry);
  return [
    on('graphql:operation', createOperationSubscriber(telemetry, phases, upgrades)),
    on<ParseEvent>('graphql:parse', (message) => phases.add('parse', message)),
    on<ValidateEvent>('graphql:validate', (message) => phases.add('validate', message)),
    on<ObservedConnection>('graphql:connection', (message) =>
      observeConnection(telemetry, message, upgrades),
    ),
    on('static:request', createFileObserver(telemetry)),
    on<ObservedUpload>('uploads:request', (message) => observeUpload(telemetry, message)),
    on<ObservedPublish>('pubsub:publish', topics.onPublish),
    on<DeliveryEvent>('pubsub:event', topics.onDelivery),
  ];
}

function on<Message>(name: string, subscriber: (message: Message) => void): Subscribers[number] {
  return [`espalier:${name}`, (message) => safely(() => subscriber(message as Message))];
}

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
    phases.end(operation, span.context);
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
