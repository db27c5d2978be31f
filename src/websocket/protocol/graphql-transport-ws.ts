import type { GraphQLFormattedError } from 'graphql';
import {
  type Closure,
  duplicateId,
  INVALID_MESSAGE,
  MessageType,
  SECOND_INIT,
  toClientMessage,
  UNAUTHORIZED,
} from './graphql-ws-adapter.ts';
import type { OperationPayload } from './message.ts';
import { Session } from './session.ts';

/** The subprotocol `graphql-transport-ws` (PROTOCOL.md of graphql-ws). */
export class GraphQLTransportWsSession extends Session {
  readonly name = 'graphql-transport-ws';
  readonly resultType = 'next';

  protected handle(value: unknown): void {
    const message = toClientMessage(value);
    switch (message?.type) {
      case MessageType.ConnectionInit:
        if (this.state !== 'opened') this.closeSocket(SECOND_INIT);
        else this.initialise(message.payload ?? {});
        break;
      case MessageType.Ping:
        this.connection.write(
          message.payload ? { type: MessageType.Pong, payload: message.payload } : { type: MessageType.Pong },
        );
        break;
      case MessageType.Pong:
        break;
      case MessageType.Subscribe:
        this.#subscribe(message.id, message.payload);
        break;
      case MessageType.Complete:
        this.cancel(JSON.stringify(message.id));
        break;
      default:
        this.closeSocket(INVALID_MESSAGE);
    }
  }

  protected errorPayload(errors: readonly GraphQLFormattedError[]): unknown {
    return errors;
  }

  protected onAcknowledged(): void {
    // Clients of this protocol send the first operation after the acknowledgement only.
  }

  refuse(closure: Closure): void {
    this.closeSocket(closure);
  }

  #subscribe(id: string, payload: OperationPayload): void {
    const key = JSON.stringify(id);
    if (id.length > this.connection.limits.maxIdLength) this.closeSocket(INVALID_MESSAGE);
    else if (this.state !== 'acknowledged') this.closeSocket(UNAUTHORIZED);
    else if (this.isInUse(key)) this.closeSocket(duplicateId(id));
    else this.begin(key, payload);
  }
}
