/** @tags node graphql */
import { buildSchema, GraphQLSchema } from 'graphql';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { ready } from '../live/client.ts';
import { type Running, run } from './server.ts';

/** A schema whose fields tell its version, and an extra field of that version. */
function schemaOf(version: number): GraphQLSchema {
  const schema = buildSchema(`
    type Query { a: Int, b: Int, only${version}: Int }
    type Subscription { ticks: Int }
  `);
  const fields = { ...schema.getQueryType()?.getFields(), ...schema.getSubscriptionType()?.getFields() };
  for (const field of Object.values(fields)) {
    field.resolve = async () => version;
    field.subscribe = async function* () {
      yield {};
      await new Promise(() => undefined);
    };
  }
  return schema;
}

let running: Running | undefined;

async function serve(options: GraphQLOptions = {}) {
  const handler = graphqlHTTP(schemaOf(0), { onError: false, ...options });
  running = await run((req, res) => void handler(req, res));
  attachSubscriptions(running.server, handler, { path: '/graphql' });
  const { url } = running;
  const ask = async (body: object): Promise<{ data?: Record<string, number>; errors?: unknown }> => {
    const headers = { 'content-type': 'application/json' };
    return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).json();
  };
  return { handler, url, ask };
}

afterEach(async () => {
  await running?.close();
  running = undefined;
});

describe('replace of the handler of graphqlHTTP', () => {
  it('replace loses and mixes nothing among a thousand requests while the schema is replaced ten times', async () => {
    const { handler, ask } = await serve({ documents: { from: { both: '{ a b }' } } });
    const counts = { requests: 0, wrong: 0 };
    const seen = new Set<number>();
    let isOver = false;
    const client = async (): Promise<void> => {
      while (!isOver || counts.requests < 1000) {
        const body = counts.requests % 2 === 0 ? { query: '{ a b }' } : { documentId: 'both' };
        counts.requests++;
        const { data, errors } = await ask(body);
        if (errors !== undefined || data === undefined || data['a'] !== data['b']) counts.wrong++;
        else seen.add(data['a'] as number);
      }
    };
    const clients = Promise.all(Array.from({ length: 16 }, client));
    for (let version = 1; version <= 10; version++) {
      await handler.replace(schemaOf(version));
      expect(await ask({ query: `{ only${version} }` })).toEqual({ data: { [`only${version}`]: version } });
    }
    isOver = true;
    await clients;
    expect(counts.wrong).toBe(0);
    expect(counts.requests).toBeGreaterThanOrEqual(1000);
    expect(seen.has(10)).toBe(true);
    expect(await ask({ query: '{ only9 }' })).toHaveProperty('errors');
  });

  it('replace refuses an invalid schema, and the earlier one stays in use', async () => {
    const { handler, ask } = await serve();
    const invalid = new GraphQLSchema({});
    await expect(handler.replace(invalid)).rejects.toThrow('Query root type must be provided');
    await expect(Reflect.apply(handler.replace, undefined, ['type Query'])).rejects.toThrow(
      'replace: argument',
    );
    expect(await ask({ query: '{ a }' })).toEqual({ data: { a: 0 } });
    const dynamic = graphqlHTTP(() => schemaOf(0));
    await expect(dynamic.replace(schemaOf(1))).rejects.toThrow('function of the request');
  });

  it('replace lets sockets finish with the earlier schema, and then closes them with 1012', async () => {
    const { handler, url } = await serve({ timeout: 500 });
    const old = await ready(url.replace('http', 'ws'));
    const idle = await ready(url.replace('http', 'ws'));
    old.send({ id: '1', type: 'subscribe', payload: { query: 'subscription { ticks }' } });
    expect(await old.next()).toMatchObject({ payload: { data: { ticks: 0 } } });
    await handler.replace(schemaOf(1));
    idle.send({ id: '1', type: 'subscribe', payload: { query: '{ only1 }' } });
    expect(await idle.next()).toMatchObject({ payload: { data: { only1: 1 } } });
    expect(await old.closed).toEqual({ code: 1012, reason: 'The schema was replaced' });
    await idle.close();
  });

  it('replace ends event streams of the earlier schema after the time', async () => {
    const { handler, url } = await serve({ timeout: 500 });
    const headers = { 'content-type': 'application/json', accept: 'text/event-stream' };
    const body = JSON.stringify({ query: 'subscription { ticks }' });
    const response = await fetch(url, { method: 'POST', headers, body });
    const text = response.text();
    await handler.replace(schemaOf(1));
    expect(await text).toContain('"ticks":0');
  });
});
