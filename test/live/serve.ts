import type http from 'node:http';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import type { SubscriptionOptions, SubscriptionStats, Subscriptions } from '../../types/subscriptions.ts';
import { atEnd } from '../kit.ts';
import { connect, listen, type RawClient, ready } from './client.ts';
import { type Live, liveSchema } from './schema.ts';

export { until } from '../until.ts';

export interface Served {
  readonly server: http.Server;
  readonly url: string;
  readonly port: number;
  readonly live: Live;
  readonly subscriptions: Subscriptions;
}

/** Runs the tests of a file in production. */
export function inProduction(): void {
  const environment = process.env['NODE_ENV'];
  beforeAll(() => {
    // Development adds the messages of unexpected errors to their extensions.
    process.env['NODE_ENV'] = 'production';
  });
  afterAll(() => {
    process.env['NODE_ENV'] = environment;
  });
}

/**
 * Starts a server, over TLS if `secure`, with the test schema attached. At the end nothing may be left but sources that cannot be
 * cancelled.
 */
export async function serve(
  options?: SubscriptionOptions,
  handler?: http.RequestListener,
  secure = false,
  graphql?: GraphQLOptions,
): Promise<Served> {
  const { schema, live } = liveSchema();
  const { server, url, port } = await listen(handler, secure);
  // Development adds the messages of unexpected errors to their extensions.
  process.env['NODE_ENV'] = 'production';
  const target = graphql === undefined ? schema : graphqlHTTP(schema, graphql);
  const subscriptions = attachSubscriptions(server, target, options);
  atEnd(async () => {
    await subscriptions.close();
    expect(subscriptions.stats()).toEqual({ ...NOTHING, unreleased: expect.any(Number) });
  });
  return { server, url, port, live, subscriptions };
}

type ServedClient = Served & { readonly client: RawClient };

/** Serves the test schema to one client, which has opened its socket. */
export async function serveOpen(
  options?: SubscriptionOptions,
  protocol?: string | string[],
): Promise<ServedClient> {
  const served = await serve(options);
  return { ...served, client: await connect(served.url, protocol) };
}

/** Serves the test schema to one client, whose connection was accepted. */
export async function serveReady(
  options?: SubscriptionOptions,
  protocol?: string,
  graphql?: GraphQLOptions,
): Promise<ServedClient> {
  const served = await serve(options, undefined, false, graphql);
  return { ...served, client: await ready(served.url, protocol) };
}

/** The statistics without connections, operations and sources. */
export const NOTHING: SubscriptionStats = {
  connections: 0,
  operations: 0,
  sources: 0,
  unreleased: 0,
  groups: 0,
};
