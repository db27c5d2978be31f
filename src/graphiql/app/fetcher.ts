import type { Fetcher, FetcherReturnType } from '@graphiql/toolkit';
import { type DocumentNode, Kind, type OperationDefinitionNode, parse, visit } from 'graphql';
import { startRun } from './activity.ts';
import { errorResult, sendOverHttp } from './http.ts';
import { config } from './settings.ts';
import { subscribeOverSocket } from './socket.ts';
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
    const method = operation?.operation === 'query' ? config.method : 'POST';
    return sendOverHttp(params, headers, { method, incremental: isIncremental(document), run });
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
