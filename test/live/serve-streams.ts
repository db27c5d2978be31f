import { once } from 'node:events';
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import type { SubscriptionOptions, Subscriptions } from '../../types/subscriptions.ts';
import { type Live, liveSchema } from './schema.ts';

export interface Served {
  readonly url: string;
  readonly port: number;
  readonly server: http.Server;
  readonly live: Live;
  readonly subscriptions: Subscriptions;
}

const running: Served[] = [];

/** Starts an Express server with the schema of the subscription tests; `stopAll` closes it. */
export async function serve(
  options: GraphQLOptions = {},
  { attach = {}, before = [] }: { attach?: SubscriptionOptions; before?: express.RequestHandler[] } = {},
): Promise<Served> {
  process.env['NODE_ENV'] = 'production';
  const { schema, live } = liveSchema();
  const handler = graphqlHTTP(schema, { graphiql: false, onError: false, ...options });
  const server = http.createServer(
    express()
      .use(...before, (_req, _res, next) => next())
      .use('/graphql', handler),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const subscriptions = attachSubscriptions(server, handler, attach);
  const served = { url: `http://127.0.0.1:${port}/graphql`, port, server, live, subscriptions };
  running.push(served);
  return served;
}

/** Closes all servers, and checks that no connection, operation or source is left. */
export async function stopAll(): Promise<void> {
  for (const { server, subscriptions, live } of running.splice(0)) {
    await subscriptions.close();
    expect({ ...subscriptions.stats(), open: live.open }).toEqual({
      connections: 0,
      operations: 0,
      sources: 0,
      unreleased: 0,
      groups: 0,
      open: 0,
    });
    server.close();
    server.closeAllConnections();
  }
}

export interface Reading {
  readonly req: http.ClientRequest;
  readonly res: http.IncomingMessage;
  readonly status: number | undefined;
  readonly body: string;
  readonly ended: boolean;
}

/** Sends a request and collects the body as it arrives. With `params` it is a POST, unless `method` is set. */
export async function open(
  url: string,
  {
    params,
    method,
    headers = {},
  }: { params?: object; method?: string; headers?: http.OutgoingHttpHeaders } = {},
): Promise<Reading> {
  const req = http.request(url, {
    method: method ?? (params === undefined ? 'GET' : 'POST'),
    headers: { ...(params && { 'content-type': 'application/json' }), ...headers },
  });
  req.on('error', () => undefined);
  req.end(params && JSON.stringify(params));
  const [res] = (await once(req, 'response')) as [http.IncomingMessage];
  const reading = { req, res, status: res.statusCode, body: '', ended: false };
  res.on('data', (chunk: Buffer) => {
    reading.body += chunk.toString();
  });
  res.on('end', () => {
    reading.ended = true;
  });
  res.on('error', () => undefined);
  return reading;
}

export const EVENTS = { accept: 'text/event-stream' };

/** Returns the URL of a GET with the parameters. */
export const withParams = (url: string, params: Record<string, string>): string =>
  `${url}?${new URLSearchParams(params)}`;
