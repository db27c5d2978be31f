/** @tags node-lines graphql */
import { Client, fetchExchange, gql } from '@urql/core';
import { createClient } from 'graphql-sse';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { incrementalSchema, V17 } from '../graphql/incremental-schema.ts';
import { serve } from '../live/serve-streams.ts';
import { assertEvents } from '../live/urql-events.ts';
import { until } from '../until.ts';
import { codedFetch } from './coded-fetch.ts';
import { listen } from './raw.ts';

const SUBSCRIPTION = 'subscription { events(topic: "a") }';

describe('clients of compressed responses', () => {
  const urql = (url: string) =>
    new Client({
      url,
      exchanges: [fetchExchange],
      fetchSubscriptions: true,
      preferGetMethod: false,
      fetch: codedFetch,
    });

  it('urql reads compressed results and events', async () => {
    const { url, live } = await serve({ compress: true });
    const client = urql(url);
    const { data } = await client.query('{ big(bytes: 5000) }', {});
    expect(data).toMatchObject({ big: 'x'.repeat(5000) });
    await assertEvents(client, live);
  });

  it('urql merges the compressed payloads of a deferred query', async () => {
    const { schema, calls } = incrementalSchema();
    const handler = graphqlHTTP(schema, { graphiql: false, onError: false, compress: true });
    const client = urql(await listen((req, res) => handler(req, res)));
    const results: { data: unknown; hasNext: boolean }[] = [];
    client
      .query(gql('{ hello list @stream(initialCount: 1) ... @defer { slow } }'), {})
      .subscribe(({ data, hasNext, error }) => results.push({ data: error ?? data, hasNext }));
    if (V17) await until(() => results.length > 0);
    calls.release();
    await until(() => results.at(-1)?.hasNext === false);
    if (V17) expect(results[0]).toMatchObject({ hasNext: true });
    expect(results.at(-1)?.data).toMatchObject({ hello: 'world', list: [1, 2, 3], slow: 'slow' });
  });

  it('graphql-sse reads compressed results and events', async () => {
    const { url, live } = await serve({ compress: true });
    const client = createClient({ url, retryAttempts: 0, fetchFn: codedFetch });
    const whole = [];
    for await (const result of client.iterate({ query: '{ big(bytes: 5000) }' })) whole.push(result);
    expect(whole).toEqual([{ data: { big: 'x'.repeat(5000) } }]);
    const events = client.iterate({ query: SUBSCRIPTION });
    const first = events.next();
    await until(() => live.open === 1);
    live.publish('a', 'one');
    expect(await first).toMatchObject({ value: { data: { events: 'one' } } });
    live.publish('a', 'two');
    expect(await events.next()).toMatchObject({ value: { data: { events: 'two' } } });
    client.dispose();
    await until(() => live.open === 0);
  });
});
