import { validateMessage } from 'graphql-ws';
import type { Connection } from './connection.ts';
import { type Dialect, type Message, parseJson, type SubscribePayload } from './dialect.ts';

/** graphql-transport-ws: the engine's own protocol; we keep the ids and read the message once. */
export const modern: Dialect = {
  name: 'graphql-transport-ws',
  resultType: 'next',
  receive(connection, text) {
    const message = checked(parseJson(connection, text));
    switch (message?.type) {
      case 'connection_init':
      case 'ping':
      case 'pong':
        return connection.forward(text);
      case 'subscribe':
        return subscribe(connection, message.id as string, message.payload as SubscribePayload);
      case 'complete':
        return connection.operations.cancel(JSON.stringify(message.id));
      default:
        return breach(connection);
    }
  },
  send: (connection, message) => connection.write(message),
  close: (connection, code, reason) => connection.shut(code, reason),
};

/** The engine answers empty text with 4400; the server's own types would make it throw (4500). */
const breach = (connection: Connection): void => connection.forward('');

function checked(value: unknown): Message | undefined {
  try {
    return validateMessage(value) as Message;
  } catch {
    return undefined;
  }
}

function subscribe(connection: Connection, id: string, payload: SubscribePayload): void {
  if (id.length > connection.hub.settings.maxIdLength) {
    breach(connection);
    return;
  }
  const key = JSON.stringify(id);
  const live = connection.operations.find(key);
  // The engine refuses: an id in use (4409), anything before the acknowledgement (4401).
  if (live !== undefined) {
    connection.operations.subscribe(live.id);
    return;
  }
  if (!connection.ready) {
    connection.operations.subscribe('early');
    return;
  }
  connection.operations.begin(key, payload);
}
