import { channel } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { DocumentNode, GraphQLError } from 'graphql';
import type { ExecutionOutcome, PreparedOperation } from '../execution/types.ts';

/** Published when a request has come in, before anything is read of it. */
export interface RequestEvent {
  req: IncomingMessage;
  res: ServerResponse;
}

/** Published when a document was parsed; what the cache knows is not parsed again. */
export interface ParseEvent {
  source: string;
  document: DocumentNode | undefined;
  errors: readonly GraphQLError[];
  /** Milliseconds. */
  duration: number;
}

/** Published when a document was validated; what the cache knows is not validated again. */
export interface ValidateEvent {
  document: DocumentNode;
  errors: readonly GraphQLError[];
  duration: number;
}

/** Published when an operation has run. */
export interface ExecuteEvent {
  req: IncomingMessage;
  operation: PreparedOperation;
  outcome: ExecutionOutcome;
  duration: number;
}

/** Published when the answer was handed to the socket. */
export interface ResponseEvent {
  req: IncomingMessage;
  res: ServerResponse;
  status: number;
  /** The errors before masking. */
  errors: readonly GraphQLError[];
  duration: number;
}

/** A channel whose messages have a type; publishing is free when nobody listens. */
interface EventChannel<Message> {
  readonly hasSubscribers: boolean;
  publish(message: Message): void;
}

const named = <Message>(name: string): EventChannel<Message> => channel(`espalier:graphql:${name}`);

/** The channels, by the last word of their names. */
export const events: {
  readonly request: EventChannel<RequestEvent>;
  readonly parse: EventChannel<ParseEvent>;
  readonly validate: EventChannel<ValidateEvent>;
  readonly execute: EventChannel<ExecuteEvent>;
  readonly response: EventChannel<ResponseEvent>;
} = {
  request: named('request'),
  parse: named('parse'),
  validate: named('validate'),
  execute: named('execute'),
  response: named('response'),
};
