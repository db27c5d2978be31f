import { assertJsonTextWithinLimits } from '../http/body/json-limits.ts';
import type { Connection } from './connection.ts';

/** A message of the modern protocol, as far as anybody looks at it. */
export interface Message {
  type: string;
  id?: unknown;
  payload?: unknown;
}

/** One subprotocol as a translation from and to the engine, which speaks `graphql-transport-ws`. */
export interface Dialect {
  readonly name: 'graphql-transport-ws' | 'graphql-ws';
  /** The type of a message that carries a result. */
  readonly resultType: 'next' | 'data';
  /** A message from the client. */
  receive(connection: Connection, text: string): void;
  /** A message of the engine, whose `id` is already the client's. */
  send(connection: Connection, message: Message): void;
  /** The engine, or we, want the socket closed. */
  close(connection: Connection, code: number, reason: string): void;
}

/** The payload of a subscribe message after its types were checked. */
export interface SubscribePayload {
  query: string;
  operationName?: string | null;
  variables?: Record<string, unknown> | null;
  extensions?: Record<string, unknown> | null;
}

/** A message beside its variables. */
const MOST_VALUES = 1000;

/** A JSON value, or undefined for text that is none, or that holds more than any operation may. */
export function parseJson({ hub }: Connection, text: string): unknown {
  try {
    assertJsonTextWithinLimits(text, hub.core.maxVariables + MOST_VALUES);
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
