/**
 * The only imports from the graphql-ws package: the message types and close codes of the protocol, and the
 * check of a message (`validateMessage`). The build copies these parts into dist/. Its server (`makeServer`) is
 * not used: it supports one of our two subprotocols, parses each message again, keeps each message until its
 * operation ends, and sends every result through several promises; session.ts replaces it. The reasons of close
 * frames equal those of graphql-ws, since clients log them.
 */
import {
  CloseCode,
  type CompleteMessage,
  type ConnectionInitMessage,
  MessageType,
  type PingMessage,
  type PongMessage,
  type SubscribeMessage,
  validateMessage,
} from 'graphql-ws';

export { MessageType };

/** A valid message of a client. */
type ClientMessage = CompleteMessage | ConnectionInitMessage | PingMessage | PongMessage | SubscribeMessage;

/** Returns the value as a client message, or undefined if the protocol does not allow clients to send it. */
export function toClientMessage(value: unknown): ClientMessage | undefined {
  try {
    const message = validateMessage(value);
    switch (message.type) {
      case MessageType.ConnectionAck:
      case MessageType.Next:
      case MessageType.Error:
        return undefined;
      default:
        return message;
    }
  } catch {
    return undefined;
  }
}

/** A close code with the reason that graphql-ws sends. */
export interface Closure {
  readonly code: number;
  readonly reason: string;
}

export const INVALID_MESSAGE: Closure = { code: CloseCode.BadRequest, reason: 'Invalid message received' };
export const UNAUTHORIZED: Closure = { code: CloseCode.Unauthorized, reason: 'Unauthorized' };
export const FORBIDDEN: Closure = { code: CloseCode.Forbidden, reason: 'Forbidden' };
export const INTERNAL_ERROR: Closure = {
  code: CloseCode.InternalServerError,
  reason: 'Internal server error',
};
export const UNKNOWN_SUBPROTOCOL: Closure = {
  code: CloseCode.SubprotocolNotAcceptable,
  reason: 'Subprotocol not acceptable',
};
export const INIT_TIMEOUT: Closure = {
  code: CloseCode.ConnectionInitialisationTimeout,
  reason: 'Connection initialisation timeout',
};
export const SECOND_INIT: Closure = {
  code: CloseCode.TooManyInitialisationRequests,
  reason: 'Too many initialisation requests',
};
/** graphql-ws has no limit of operations. Its clients do not reconnect after this code. */
export const TOO_MANY_OPERATIONS: Closure = {
  code: CloseCode.TooManyInitialisationRequests,
  reason: 'Too many operations',
};
export const duplicateId = (id: string): Closure => ({
  code: CloseCode.SubscriberAlreadyExists,
  reason: `Subscriber for ${id} already exists`,
});
