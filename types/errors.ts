import type { IncomingMessage } from 'node:http';
import type { WebSocketLike } from './connect.ts';

/** The place of an unexpected error. */
export interface ErrorDetails {
  readonly transport: 'http' | 'websocket';
  /** The name of the operation; undefined for an anonymous one, and before a document is parsed. */
  readonly operationName: string | undefined;
  /** The response path of the field; undefined outside of the execution of fields. */
  readonly path: readonly (string | number)[] | undefined;
  /** The request; over WebSocket the upgrade request, while it is retained. */
  readonly request: IncomingMessage | undefined;
  /** The WebSocket; undefined over HTTP. */
  readonly socket: WebSocketLike | undefined;
}

/** Reports an unexpected error to the operator. */
export type ErrorReporter = (error: unknown, details: ErrorDetails) => unknown;
