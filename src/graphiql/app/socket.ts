import type { FetcherParams } from '@graphiql/toolkit';
import { type Client, createClient } from 'graphql-ws/client';
import { config, socketEndpoint } from './settings.ts';

interface Connection {
  client: Client;
  /** The server acknowledged it at least once. */
  known: boolean;
}

/** One connection per set of headers, which are its `connectionParams`; subscriptions with the same ones share it. */
const connections = new Map<string, Connection>();

function connectionFor(headers: Record<string, string>): Connection {
  const key = JSON.stringify(headers);
  const found = connections.get(key);
  if (found !== undefined) return found;
  const client = createClient({
    url: socketEndpoint,
    connectionParams: headers,
    // Kept a little while for the next run; a broken one is shown, not silently replaced.
    lazyCloseTimeout: 5000,
    retryAttempts: 0,
    connectionAckWaitTimeout: 15_000,
  });
  const connection = { client, known: false };
  client.on('connected', () => {
    connection.known = true;
  });
  connections.set(key, connection);
  return connection;
}

interface Sink {
  next(value: unknown): void;
  error(error: unknown): void;
  complete(): void;
}

/** Opens a subscription; unsubscribing ends it. */
export function subscribeOverSocket(
  { query, variables, operationName }: FetcherParams,
  headers: Record<string, string>,
): never {
  const connection = connectionFor(headers);
  const subscribe = (sink: Sink) => ({
    unsubscribe: connection.client.subscribe(
      { query, variables, operationName },
      {
        next: (value) => sink.next(value),
        error: (error) => sink.error(explain(error, connection)),
        complete: () => sink.complete(),
      },
    ),
  });
  return { subscribe } as never;
}

/** A socket that closes says only a number; the visitor is told what to do about it. */
function explain(error: unknown, { known }: Connection): unknown {
  if (!(error instanceof Event)) return error;
  const { code, reason } = error as CloseEvent;
  if (known || (code !== undefined && code !== 1006)) {
    return {
      message: `The WebSocket ${socketEndpoint} was closed: ${[code, reason].filter(Boolean).join(' ')}`,
    };
  }
  const own = config.subscriptionEndpoint === undefined && config.endpoint === undefined;
  const advice = own
    ? 'Is one attached? After `const server = app.listen(…)`, call `attachSubscriptions(server, schema)`.'
    : 'Does the option graphiql.subscriptionEndpoint name the right place?';
  return {
    message: `No WebSocket answered at ${socketEndpoint}. ${advice} If it is there, it refused this page: see its log.`,
  };
}
