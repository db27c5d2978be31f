/** @tags graphql */
import http from 'node:http';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { listen } from '../kit.ts';
import { connect, LEGACY, MODERN, ready } from '../live/client.ts';
import { until } from '../until.ts';
import { callerOf, createSchema, Effects, post, useTimes } from './service.ts';

async function serve(engine: 'compiled' | 'graphql-js', effects: Effects, wait = 5000): Promise<string> {
  useTimes({ wait });
  const handler = graphqlHTTP(createSchema(effects), {
    engine,
    onError: false,
    caller: callerOf,
    idempotency: { required: ['pay'] },
  });
  const server = http.createServer(handler);
  attachSubscriptions(server, handler, { path: '/graphql' });
  const { port } = await listen(server);
  return `127.0.0.1:${port}/graphql`;
}

const query = (key: string) =>
  `mutation ($amount: Int!) { pay(amount: $amount) @idempotent(key: "${key}") { id } }`;
const PLAIN = 'mutation ($amount: Int!) { pay(amount: $amount) { id } }';

describe.each([MODERN, LEGACY])('with %s', (protocol) => {
  const start = protocol === LEGACY ? 'start' : 'subscribe';
  const open = async (address: string) => {
    const client = await ready(`ws://${address}`, protocol);
    return {
      close: () => client.close(),
      websocket: client.websocket,
      send: (id: string, text: string, amount: unknown) =>
        client.send({ id, type: start, payload: { query: text, variables: { amount } } }),
      async result() {
        const messages = await client.until(({ type }) => ['next', 'data', 'error'].includes(String(type)));
        return JSON.stringify(messages.at(-1)?.['payload']);
      },
    };
  };

  it.each(['compiled', 'graphql-js'] as const)(
    'sockets and HTTP share the keys, with the engine %s',
    async (engine) => {
      const effects = new Effects();
      const address = await serve(engine, effects);
      const client = await open(address);
      client.send('1', query('a'), 1);
      expect(await client.result()).toBe('{"data":{"pay":{"id":"1"}}}');
      client.send('2', query('a'), 1);
      expect(await client.result()).toBe('{"data":{"pay":{"id":"1"}}}');
      const overHttp = await post(`http://${address}`, { query: query('a'), variables: { amount: 1 } });
      expect([overHttp.replayed, overHttp.data]).toEqual([true, { pay: { id: '1' } }]);
      client.send('3', query('a'), 2);
      expect(await client.result()).toContain('"code":"IDEMPOTENCY_KEY_REUSED"');
      client.send('4', PLAIN, 2);
      const refused = await client.result();
      expect(refused).toContain('"code":"IDEMPOTENCY_KEY_REQUIRED"');
      expect(refused).not.toContain('"http"');
      expect(effects.count).toBe(1);
      await client.close();
    },
  );

  it('a mutation whose socket is closed is finished, and a repetition on another socket gets its result', async () => {
    const effects = new Effects();
    const address = await serve('compiled', effects);
    const [first, second] = [await open(address), await open(address)];
    effects.isGated = true;
    first.send('1', query('a'), 1);
    await until(() => effects.waiting === 1);
    first.websocket.terminate();
    second.send('1', query('a'), 1);
    effects.open();
    expect(await second.result()).toBe('{"data":{"pay":{"id":"1"}}}');
    expect(effects.count).toBe(1);
    await second.close();
  });
});

it('idempotency.user needs no caller, and separates the keys of sockets and HTTP together', async () => {
  const effects = new Effects();
  const handler = graphqlHTTP(createSchema(effects), {
    onError: false,
    idempotency: { user: ({ headers }) => headers['x-user']?.toString() },
  });
  const server = http.createServer(handler);
  attachSubscriptions(server, handler, { path: '/graphql' });
  const { url, socketUrl } = await listen(server, '/graphql');
  const client = await connect(socketUrl, MODERN, { headers: { 'x-user': 'ada' } });
  client.send({ type: 'connection_init' });
  await client.until(({ type }) => type === 'connection_ack');
  const body = { query: query('a'), variables: { amount: 1 } };
  client.send({ id: '1', type: 'subscribe', payload: body });
  await client.until(({ type }) => type === 'complete');
  expect((await post(url, body, { 'x-user': 'ada' })).replayed).toBe(true);
  expect((await post(url, body, { 'x-user': 'bob' })).replayed).toBe(false);
  expect(effects.count).toBe(2);
  await client.close();
});

it('the header of an upgrade is not the key of the mutations of its socket', async () => {
  const effects = new Effects();
  const address = await serve('compiled', effects);
  const client = await connect(`ws://${address}`, MODERN, { headers: { 'idempotency-key': 'a' } });
  client.send({ type: 'connection_init' });
  await client.until(({ type }) => type === 'connection_ack');
  for (const amount of [1, 2]) {
    client.send({
      id: `${amount}`,
      type: 'subscribe',
      payload: { query: PLAIN.replace('pay', 'refund'), variables: { amount } },
    });
  }
  await client.until(({ type, id }) => type === 'complete' && id === '2');
  expect(effects.count).toBe(2);
  await client.close();
});
