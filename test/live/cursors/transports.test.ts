/** @tags node graphql */
import { until } from '../../until.ts';
import { open, type Reading, withParams } from '../serve-streams.ts';
import { publish, type Served, serve } from './serve.ts';
import { eventsOf, idsOf, type Subscribe, TRANSPORTS } from './transports.ts';

const QUERY = 'subscription { tick }';
const EVENTS = { accept: 'text/event-stream' };
const START = { after: null };

describe.each(Object.entries(TRANSPORTS))('cursors over %s', (_name, subscribe: Subscribe) => {
  it('each result has a cursor, after which another subscription continues', async () => {
    const served = await serve();
    const first = await subscribe(served, { query: QUERY, extensions: START });
    await first.next();
    await publish(served, 0, 5);
    const cursors: string[] = [];
    for (let n = 0; n < 5; n++) {
      const { data, extensions } = await first.next();
      expect(data).toEqual({ tick: n });
      cursors.push(extensions?.cursor as string);
    }
    await first.close();
    expect(new Set(cursors).size).toBe(5);
    for (const [n, after] of cursors.entries()) {
      const resumed = await subscribe(served, { query: QUERY, extensions: { after } });
      await publish(served, 5 + n, 6 + n);
      for (let next = n + 1; next < 6 + n; next++)
        expect((await resumed.next()).data).toEqual({ tick: next });
      expect(resumed.rest()).toEqual([]);
      await resumed.close();
    }
  });

  it('a client that asks for it receives its start as a result without data, and misses nothing after it', async () => {
    const served = await serve();
    await publish(served, 0, 3);
    const first = await subscribe(served, { query: QUERY, extensions: START });
    const start = await first.next();
    expect(start).toEqual({ data: null, extensions: { cursor: expect.any(String) } });
    await first.close();
    await publish(served, 3, 5);
    const after = start.extensions?.cursor;
    const resumed = await subscribe(served, { query: QUERY, extensions: { after } });
    expect((await resumed.next()).data).toEqual({ tick: 3 });
    expect((await resumed.next()).data).toEqual({ tick: 4 });
  });

  it('a client that does not ask for positions receives results with data only', async () => {
    const served = await serve();
    const client = await subscribe(served, { query: QUERY });
    await until(() => served.opened() === 1);
    await served.events.ready('tick');
    await publish(served, 0, 1);
    expect(await client.next()).toEqual({ data: { tick: 0 }, extensions: { cursor: expect.any(String) } });
  });

  it.each([
    ['a filtered stream', 'subscription { tick(even: true) }', [0, 2, 4, 6]],
    ['a stream of several topics', 'subscription { both }', [0, 1, 2, 3, 4, 5, 6, 7]],
    ['a stream that a resolver returns later', 'subscription { late }', [0, 1, 2, 3, 4, 5, 6, 7]],
  ])('%s continues after each of its cursors', async (_title, query, expected) => {
    const served = await serve();
    const first = await subscribe(served, { query, extensions: START });
    await first.next();
    await publish(served, 0, 4);
    const seen: unknown[] = [];
    let after: string | undefined;
    while (seen.length < 2) {
      const { data, extensions } = await first.next();
      seen.push(Object.values(data ?? {})[0]);
      after = extensions?.cursor;
    }
    await first.close();
    await publish(served, 4, 8);
    const resumed = await subscribe(served, { query, extensions: { after } });
    while (seen.length < expected.length) seen.push(Object.values((await resumed.next()).data ?? {})[0]);
    expect(seen).toEqual(expected);
  });

  it('events that are no longer stored end the subscription with EVENTS_MISSED', async () => {
    const served = await serve({ pubsub: { history: { length: 3 } } });
    const first = await subscribe(served, { query: QUERY, extensions: START });
    const after = (await first.next()).extensions?.cursor;
    await publish(served, 0, 10);
    const late = await subscribe(served, { query: QUERY, extensions: { after } });
    const { data, errors } = await late.next();
    expect(data).toBeUndefined();
    expect(errors).toMatchObject([{ extensions: { code: 'EVENTS_MISSED', refetch: true } }]);
  });

  it('an async generator loses the cursors, and a cursor for it is refused', async () => {
    const served = await serve();
    const first = await subscribe(served, { query: QUERY, extensions: START });
    const after = (await first.next()).extensions?.cursor;
    const generated = await subscribe(served, { query: 'subscription { generated }', extensions: START });
    await until(() => served.opened() === 2);
    await publish(served, 0, 1);
    expect(await generated.next()).toEqual({ data: { generated: 0 } });
    const resumed = await subscribe(served, { query: 'subscription { generated }', extensions: { after } });
    expect((await resumed.next()).errors).toMatchObject([{ extensions: { code: 'CURSOR_INVALID' } }]);
  });

  it('without the option cursors, results have no cursor and `after` is ignored', async () => {
    const served = await serve({ graphql: { cursors: undefined } });
    const client = await subscribe(served, { query: QUERY, extensions: { after: 'x' } });
    await until(() => served.opened() === 1);
    await served.events.ready('tick');
    await publish(served, 0, 1);
    expect(await client.next()).toEqual({ data: { tick: 0 } });
  });

  it('extensions of onOperation are next to the cursor', async () => {
    const served = await serve({ graphql: { onOperation: () => ({ extensions: { a: [1] } }) } });
    const client = await subscribe(served, { query: QUERY, extensions: START });
    await client.next();
    await publish(served, 0, 1);
    expect(await client.next()).toEqual({
      data: { tick: 0 },
      extensions: { a: [1], cursor: expect.any(String) },
    });
  });
});

/** Opens an event stream, and publishes events until it has received this number. */
async function readEvents(served: Served, count: number): Promise<Reading> {
  const reading = await open(withParams(served.url, { query: QUERY }), { headers: EVENTS });
  await until(() => idsOf(reading.body).length === 1);
  await publish(served, 0, count);
  await until(() => eventsOf(reading.body).length === count);
  return reading;
}

describe('cursors over server-sent events', () => {
  it('each event has its cursor as id, and the stream begins with the id of its start', async () => {
    const reading = await readEvents(await serve(), 2);
    const ids = idsOf(reading.body);
    const [first, second] = eventsOf(reading.body) as { extensions: { cursor: string } }[];
    expect(ids.slice(1)).toEqual([first?.extensions.cursor, second?.extensions.cursor]);
    expect(reading.body).toMatch(/^:\n\nid: \S+\n\nid: \S+\nevent: next\ndata: \{"data"/);
    reading.req.destroy();
  });

  it('a stream continues after Last-Event-ID, also if the URL has an older cursor', async () => {
    const served = await serve();
    const reading = await readEvents(served, 4);
    reading.req.destroy();
    const [start, , second] = idsOf(reading.body) as [string, string, string];
    for (const extensions of [undefined, { after: start }]) {
      const params = { query: QUERY, ...(extensions && { extensions: JSON.stringify(extensions) }) };
      const headers = { ...EVENTS, 'last-event-id': second };
      const resumed = await open(withParams(served.url, params), { headers });
      await until(() => eventsOf(resumed.body).length === 2);
      expect(eventsOf(resumed.body)).toMatchObject([{ data: { tick: 2 } }, { data: { tick: 3 } }]);
      resumed.req.destroy();
    }
  });
});
