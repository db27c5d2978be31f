import type http from 'node:http';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { SubscriptionOptions, SubscriptionStats, Subscriptions } from '../../types/subscriptions.ts';
import { listen } from './client.ts';
import { type Live, liveSchema } from './schema.ts';

export { until } from '../until.ts';

export interface Served {
  readonly server: http.Server;
  readonly url: string;
  readonly port: number;
  readonly live: Live;
  readonly subscriptions: Subscriptions;
}

/** Runs the tests of a file in production, and the returned functions after each of them. */
export function inProduction(): (() => Promise<void>)[] {
  const environment = process.env['NODE_ENV'];
  const stops: (() => Promise<void>)[] = [];
  beforeAll(() => {
    // Development adds the messages of unexpected errors to their extensions.
    process.env['NODE_ENV'] = 'production';
  });
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });
  afterAll(() => {
    process.env['NODE_ENV'] = environment;
  });
  return stops;
}

const running: Served[] = [];

/** Starts a server, over TLS if `secure`, with the test schema attached; `stopAll` closes it. */
export async function serve(
  options?: SubscriptionOptions,
  handler?: http.RequestListener,
  secure = false,
): Promise<Served> {
  const { schema, live } = liveSchema();
  const { server, url, port } = await listen(handler, secure);
  // Development adds the messages of unexpected errors to their extensions.
  process.env['NODE_ENV'] = 'production';
  const served = { server, url, port, live, subscriptions: attachSubscriptions(server, schema, options) };
  running.push(served);
  return served;
}

/** The statistics without connections, operations and sources. */
export const NOTHING: SubscriptionStats = {
  connections: 0,
  operations: 0,
  sources: 0,
  unreleased: 0,
  groups: 0,
};

/** Closes all servers, and checks that nothing is left except sources that cannot be cancelled. */
export async function stopAll(): Promise<void> {
  for (const { server, subscriptions } of running.splice(0)) {
    await subscriptions.close();
    expect(subscriptions.stats()).toEqual({ ...NOTHING, unreleased: expect.any(Number) });
    server.close();
    server.closeAllConnections();
  }
}
