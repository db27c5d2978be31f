import { isObject } from '../options/rules.ts';
import type { Connection } from './connection.ts';
import { type Dialect, parseJson, type SubscribePayload } from './dialect.ts';

/**
 * graphql-ws, the protocol of subscriptions-transport-ws, as a translation. What its clients never send is ignored and
 * leaves the socket open, as its servers did; nothing is executed before the connection was accepted (CVE-2026-35523).
 */
export const legacy: Dialect = {
  name: 'graphql-ws',
  resultType: 'data',
  receive(connection, text) {
    const message = parseJson(connection, text);
    if (!isObject(message)) return;
    const { type, id, payload } = message;
    switch (type) {
      case 'connection_init':
        return init(connection, payload);
      case 'start':
        return start(connection, message, text.length);
      case 'stop':
        return stop(connection, id);
      case 'connection_terminate':
        return connection.shut(1000, '');
    }
  },
  send(connection, message) {
    // Its clients take one object, the first error: Apollo Kotlin casts the payload to a map.
    const payload = message.type === 'error' ? (message.payload as unknown[])[0] : message.payload;
    if (message.type === 'pong') return;
    connection.write({ ...message, payload });
    if (message.type === 'connection_ack') acknowledged(connection);
  },
  close(connection, code, reason) {
    const refused = code === 4403 || code === 4500;
    if (refused && !connection.ready) {
      connection.write({ type: 'connection_error', payload: { message: reason } });
      return connection.shut(1011, reason);
    }
    connection.shut(code, reason);
  },
};

function init(connection: Connection, payload: unknown): void {
  if (connection.initialised) return;
  if (payload !== undefined && payload !== null && !isObject(payload)) {
    connection.write({ type: 'connection_error', payload: { message: 'The payload must be an object' } });
    connection.shut(1000, '');
    return;
  }
  connection.forward(JSON.stringify({ type: 'connection_init', payload: payload ?? undefined }));
}

/** The acknowledgement goes out first: some clients read exactly one message after their init. */
function acknowledged(connection: Connection): void {
  if (connection.hub.settings.keepAlive > 0) connection.schedule.tick();
  const waiting = connection.waiting ?? [];
  connection.waiting = undefined;
  for (const message of waiting) start(connection, message, 0);
}

/** Its client sends `connection_init` and `start` in one go: starts wait for the acknowledgement. */
function start(connection: Connection, message: Record<string, unknown>, size: number): void {
  if (!connection.initialised) {
    connection.shut(4401, 'Unauthorized');
    return;
  }
  if (!connection.ready) {
    wait(connection, message, size);
    return;
  }
  const { id, payload } = message;
  const key = keyOf(id);
  if (key === undefined || String(id).length > connection.hub.settings.maxIdLength) return;
  if (!isSubscribePayload(payload)) {
    connection.refuse(key, 'The payload of "start" is malformed');
    return;
  }
  // A client that connects again repeats its live ids: the newer operation takes the place of the older one.
  connection.operations.cancel(key);
  connection.operations.begin(key, payload);
}

/** What waits was sent by somebody we do not know yet. */
function wait(connection: Connection, message: Record<string, unknown>, size: number): void {
  const { maxOperations, maxBufferedBytes } = connection.hub.settings;
  connection.waiting ??= [];
  connection.waitingSize += size;
  if (connection.waiting.length < maxOperations && connection.waitingSize <= maxBufferedBytes) {
    connection.waiting.push(message);
  } else connection.shut(4429, 'Too many operations');
}

function stop(connection: Connection, id: unknown): void {
  connection.waiting = connection.waiting?.filter((message) => message['id'] !== id);
  const key = keyOf(id);
  if (key !== undefined) connection.operations.cancel(key);
}

/** Ids are echoed with their JSON type. */
const keyOf = (id: unknown): string | undefined =>
  (typeof id === 'string' && id !== '') || Number.isFinite(id) ? JSON.stringify(id) : undefined;

function isSubscribePayload(value: unknown): value is SubscribePayload {
  if (!isObject(value)) return false;
  const { query, variables, operationName } = value;
  return (
    typeof query === 'string' &&
    (variables === undefined || variables === null || isObject(variables)) &&
    (operationName === undefined || operationName === null || typeof operationName === 'string')
  );
}
