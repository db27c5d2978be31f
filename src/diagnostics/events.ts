import type { IncomingMessage, ServerResponse } from 'node:http';
import type { DocumentNode, GraphQLError, OperationDefinitionNode } from 'graphql';
import type { StreamConnection, SubscriptionConnection } from '../../types/subscriptions.ts';
import type { ObservedOperation } from '../execution/observed.ts';
import type { ErrorOrigin, ExecutionOutcome, PreparedOperation } from '../execution/types.ts';
import { createChannel, type EventChannel, Observed } from './channels.ts';

/** Published when a request arrives, before it is read. */
interface RequestEvent {
  req: IncomingMessage;
  res: ServerResponse;
}

/** Published when a document was parsed, once per document in the cache. */
export interface ParseEvent {
  source: string;
  document: DocumentNode | undefined;
  errors: readonly GraphQLError[];
  /** Milliseconds. */
  duration: number;
}

/** Published when a document was validated, once per document in the cache. */
export interface ValidateEvent {
  document: DocumentNode;
  errors: readonly GraphQLError[];
  duration: number;
}

/** Published when an operation was executed. */
export interface ExecuteEvent {
  req: IncomingMessage;
  operation: PreparedOperation;
  outcome: ExecutionOutcome;
  duration: number;
}

/** Published when a subscription begins to get events, because its source stream is open. */
interface SubscribeEvent {
  origin: ErrorOrigin;
  /** The client's id of the operation; undefined if the response is the stream of one operation. */
  id: unknown;
}

/** Published when the response was written to the socket. */
export interface ResponseEvent {
  req: IncomingMessage;
  res: ServerResponse;
  status: number;
  /** The errors before masking. */
  errors: readonly GraphQLError[];
  duration: number;
}

/**
 * Published when an operation begins to have several results: a subscription whose source is open, or an
 * operation after its first result.
 */
export interface StreamStartEvent {
  kind: 'subscription' | 'incremental';
  operation: PreparedOperation;
  /** The transport with the request or socket; that of the first client of a shared subscription. */
  origin: ErrorOrigin | undefined;
}

/** Published when a stream ends. */
export interface StreamEndEvent {
  /** The message that was published at the start of the stream. */
  stream: StreamStartEvent;
  /** The results: events of a subscription, or payloads with the first one. */
  payloads: number;
  /** `cancelled`: the client cancelled the operation or disconnected, or the server ended the stream. */
  reason: 'completed' | 'failed' | 'cancelled';
  /** Milliseconds since the start. */
  duration: number;
}

/** Published for each operation with a cost, before its execution. */
interface CostEvent {
  /** The request or the WebSocket. */
  source: unknown;
  operation: OperationDefinitionNode;
  cost: number;
  maxCost: number;
  /** Whether the operation is refused; false with the option `reportOnly`. */
  refused: boolean;
}

/** Published when a WebSocket or an event stream was opened. Subscribers may observe how it ends. */
export class ObservedConnection extends Observed<undefined> {
  readonly connection: SubscriptionConnection | StreamConnection;

  constructor(connection: SubscriptionConnection | StreamConnection) {
    super();
    this.connection = connection;
  }
}

/** The channels, by the last part of their names. */
export const events: {
  readonly request: EventChannel<RequestEvent>;
  readonly parse: EventChannel<ParseEvent>;
  readonly validate: EventChannel<ValidateEvent>;
  readonly operation: EventChannel<ObservedOperation>;
  readonly connection: EventChannel<ObservedConnection>;
  readonly cost: EventChannel<CostEvent>;
  readonly execute: EventChannel<ExecuteEvent>;
  readonly subscribe: EventChannel<SubscribeEvent>;
  readonly response: EventChannel<ResponseEvent>;
  readonly streamStart: EventChannel<StreamStartEvent>;
  readonly streamEnd: EventChannel<StreamEndEvent>;
} = {
  request: createChannel('graphql:request'),
  parse: createChannel('graphql:parse'),
  validate: createChannel('graphql:validate'),
  /** Published when an operation of any transport was prepared or refused, before it is executed. */
  operation: createChannel('graphql:operation'),
  connection: createChannel('graphql:connection'),
  cost: createChannel('graphql:cost'),
  execute: createChannel('graphql:execute'),
  subscribe: createChannel('graphql:subscribe'),
  response: createChannel('graphql:response'),
  streamStart: createChannel('graphql:stream-start'),
  streamEnd: createChannel('graphql:stream-end'),
};
