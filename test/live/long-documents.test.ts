/** @tags once slow */
import { LEGACY, MODERN, ready } from './client.ts';
import { serve, until } from './serve.ts';

describe.each([
  [MODERN, 'subscribe', 'complete'],
  [LEGACY, 'start', 'stop'],
])('long new documents over %s', (protocol, start, stop) => {
  let documents = 0;
  const long = (query: string): string => `${query} #${documents++} ${'x'.repeat(3000)}`;
  const operation = (id: string, query: string): object => ({ id, type: start, payload: { query } });

  it('operations that follow a long new document on the same socket start after it', async () => {
    const { url } = await serve({ ping: false });
    const client = await ready(url, protocol);
    const ids = Array.from({ length: 30 }, (_, i) => `m${i}`);
    for (const [i, id] of ids.entries()) {
      const query = `mutation { set(value: "${id}") }`;
      client.send(operation(id, i % 3 === 0 ? long(query) : query));
    }
    const messages = await client.until(({ id, type }) => id === ids.at(-1) && type === 'complete');
    const values = messages.flatMap(
      ({ payload }) => (payload as { data?: { set: string } })?.data?.set ?? [],
    );
    expect(values).toEqual(ids);
  });

  it('a long new document that is invalid fails alone', async () => {
    const { url } = await serve({ ping: false });
    const client = await ready(url, protocol);
    client.send(operation('syntax', long('{')));
    client.send(operation('unknown', long('{ nothing }')));
    client.send(operation('good', long('{ hello }')));
    const messages = await client.until(({ id, type }) => id === 'good' && type === 'complete');
    expect(messages.map(({ id, type }) => [id, type === 'data' ? 'next' : type])).toEqual([
      ['syntax', 'error'],
      ['unknown', 'error'],
      ['good', 'next'],
      ['good', 'complete'],
    ]);
  });

  it('a long new document never starts after the client has cancelled it or closed the socket', async () => {
    const { url, live, subscriptions } = await serve({ ping: false });
    const client = await ready(url, protocol);
    const others = await Promise.all(Array.from({ length: 30 }, () => ready(url, protocol)));
    for (const other of others) other.send(operation('heavy', long(`{ ${'context '.repeat(2000)} }`)));
    client.send(operation('cancelled', long('mutation { set(value: "cancelled") }')));
    client.send(operation('behind', '{ deep { hello } }'));
    // The server has both before they are cancelled; they wait for the heavy ones.
    await client.silence();
    client.send({ id: 'cancelled', type: stop });
    client.send({ id: 'behind', type: stop });
    client.send(operation('last', '{ hello }'));
    await client.until(({ id, type }) => id === 'last' && type === 'complete');
    expect(live.calls).toEqual({ hello: 1 });
    await Promise.all(others.map((other) => other.close()));

    const leaving = await ready(url, protocol);
    leaving.send(operation('long', long('subscription { events(topic: "a") }')));
    leaving.send(operation('behind', 'subscription { events(topic: "a") }'));
    await leaving.close();
    await until(() => subscriptions.stats().connections === 1);
    await client.silence();
    expect(live.open).toBe(0);
    expect(subscriptions.stats()).toMatchObject({ operations: 0, sources: 0, unreleased: 0 });
  });
});
