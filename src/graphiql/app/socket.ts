import type { FetcherParams } from '@graphiql/toolkit';
import type { ExecutionResult } from 'graphql';
import { type Client, createClient } from 'graphql-ws/client';
import { config, socketEndpoint } from './settings.ts';

interface Connection {
  client: Client;
  /** Whether the server has acknowledged the connection at least once. */
  acknowledged: boolean;
}

/** One connection per set of headers, which become its `connectionParams`. Subscriptions with equal headers share it. */
const connections = new Map<string, Connection>();

function connectionFor(headers: Record<string, string>): Connection {
  const key = JSON.stringify(headers);
  const found = connections.get(key);
  if (found !== undefined) return found;
  const client = createClient({
    url: socketEndpoint,
    connectionParams: headers,
    // The connection stays open for some seconds for the next run. A lost connection is shown as an error.
    lazyCloseTimeout: 5000,
    retryAttempts: 0,
    connectionAckWaitTimeout: 15_000,
  });
  const connection = { client, acknowledged: false };
  client.on('connected', () => {
    connection.acknowledged = true;
  });
  connections.set(key, connection);
  return connection;
}

/** Starts a subscription; `return` of the iterator ends it. */
export function subscribeOverSocket(
  { query, variables, operationName }: FetcherParams,
  headers: Record<string, string>,
): AsyncIterableIterator<ExecutionResult> {
  const connection = connectionFor(headers);
  const payload = { query, variables, operationName };
  // GraphiQL's types name the class GraphQLError, but it only serialises errors.
  const results = connection.client.iterate(payload) as AsyncIterableIterator<ExecutionResult>;
  return {
    next: () =>
      results.next().catch((error: unknown) => {
        throw explain(error, connection);
      }),
    return: () => results.return?.() ?? Promise.resolve({ value: undefined, done: true }),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Converts an error or a close event, which has a code only, to an error with advice. */
function explain(error: unknown, { acknowledged }: Connection): unknown {
  if (!(error instanceof Event)) return error;
  const { code, reason } = error as CloseEvent;
  if (acknowledged || (code !== undefined && code !== 1006)) {
    return {
      message: `The WebSocket ${socketEndpoint} was closed: ${[code, reason].filter(Boolean).join(' ')}`,
    };
  }
  return { message: `The WebSocket ${socketEndpoint} could not be opened. ${adviceForRefusal()}` };
}

/** Lists the likely reasons of a refusal, because browsers hide the actual reason. */
function adviceForRefusal(): string {
  const isOwn = config.subscriptionEndpoint === undefined && config.endpoint === undefined;
  const attach = isOwn
    ? 'To accept WebSockets, call `attachSubscriptions(server, handler)` after `const server = app.listen(…)`.'
    : 'Check the option graphiql.subscriptionEndpoint.';
  const origin = isSameHost()
    ? ''
    : ` Pages of ${location.origin} need the option allowedOrigins of the server.`;
  return `${attach}${origin} If the server refuses this page, DEBUG=espalier:subscriptions in its environment logs the reason.`;
}

function isSameHost(): boolean {
  return new URL(socketEndpoint).host === location.host;
}
