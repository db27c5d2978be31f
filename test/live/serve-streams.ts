import { once } from 'node:events';
import * as http from 'node:http';
import express from 'express';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import type { SubscriptionOptions, Subscriptions } from '../../types/subscriptions.ts';
import { atEnd, type Listening, listen } from '../kit.ts';
import { type Live, liveSchema } from './schema.ts';
import { NOTHING } from './serve.ts';

export interface Served extends Listening {
  readonly live: Live;
  readonly subscriptions: Subscriptions;
}

/**
 * Starts an Express server with the schema of the subscription tests. At the end no connection, operation or source may be
 * left.
 */
export async function serve(
  options: GraphQLOptions = {},
  { attach = {}, before = [] }: { attach?: SubscriptionOptions; before?: express.RequestHandler[] } = {},
): Promise<Served> {
  process.env['NODE_ENV'] = 'production';
  const { schema, live } = liveSchema();
  const handler = graphqlHTTP(schema, { graphiql: false, onError: false, ...options });
  const app = express()
    .use(...before, (_req, _res, next) => next())
    .use('/graphql', handler);
  const listening = await listen(app, '/graphql');
  const subscriptions = attachSubscriptions(listening.server, handler, attach);
  atEnd(async () => {
    await subscriptions.close();
    expect({ ...subscriptions.stats(), open: live.open }).toEqual({ ...NOTHING, open: 0 });
  });
  return { ...listening, live, subscriptions };
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
