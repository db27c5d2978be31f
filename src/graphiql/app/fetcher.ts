import type { Fetcher, FetcherParams, FetcherReturnType } from '@graphiql/toolkit';
import {
  type DocumentNode,
  type ExecutionResult,
  Kind,
  type OperationDefinitionNode,
  parse,
  visit,
} from 'graphql';
import { type Client, createClient } from 'graphql-ws/client';
import { startRun } from './activity.ts';
import { errorResult, sendOverHttp } from './http.ts';
import { config, socketEndpoint } from './settings.ts';
import { sendUpload } from './upload.ts';

/** Sends the operation of the editors: subscriptions over a WebSocket, everything else over HTTP. */
export const fetcher: Fetcher = (params, options = {}): FetcherReturnType => {
  const document = tryParse(params.query);
  const operation = pickOperation(document, params.operationName);
  const headers = textHeaders(options.headers);
  const upload = operation && sendUpload(operation, params, headers);
  if (upload !== undefined) return upload;
  // Only a run of the editors has a parsed document; the introspection of the page has none.
  const run = options.documentAST === undefined ? undefined : startRun();
  if (operation?.operation !== 'subscription') {
    return sendOverHttp(params, headers, { incremental: isIncremental(document), run });
  }
  if (config.subscriptionEndpoint !== false) {
    const events = subscribeOverSocket(params, headers);
    return run?.count('event', events) ?? events;
  }
  run?.fail();
  return errorResult(
    'Subscriptions are switched off on this page by the option graphiql.subscriptionEndpoint.',
  );
};

/** A document with a syntax error is sent unchanged: the server reports the error. */
function tryParse(query: string): DocumentNode | undefined {
  try {
    return parse(query);
  } catch {
    return undefined;
  }
}

function pickOperation(
  document: DocumentNode | undefined,
  name: string | null | undefined,
): OperationDefinitionNode | undefined {
  const operations = document?.definitions.filter((node) => node.kind === Kind.OPERATION_DEFINITION) ?? [];
  return name ? operations.find((operation) => operation.name?.value === name) : operations[0];
}

function isIncremental(document: DocumentNode | undefined): boolean {
  let found = false;
  if (document !== undefined) {
    visit(document, {
      Directive(node) {
        found ||= node.name.value === 'defer' || node.name.value === 'stream';
      },
    });
  }
  return found;
}

function textHeaders(headers: Record<string, unknown> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name, String(value)]));
}

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
function subscribeOverSocket(
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
