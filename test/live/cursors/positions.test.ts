/** @tags node graphql engine */
import { createPubSub, type EventTransport } from '../../../middleware/pubsub.ts';
import { MemoryBroker } from '../../pubsub/transports.ts';
import { until } from '../../until.ts';
import { connect, LEGACY, MODERN, PATIENT } from '../client.ts';
import { open, type Reading, withParams } from '../serve-streams.ts';
import { publish, type Served, serve } from './serve.ts';
import { idsOf, type Subscribe, TRANSPORTS } from './transports.ts';

const EVEN = 'subscription { tick(even: true) }';
const socket = TRANSPORTS['graphql-transport-ws'] as Subscribe;
const START = { after: null };

/** The position that a filtered subscription has after events that the filter has left out. */
async function expectPositionAfterOdd(served: Served, subscribe: Subscribe): Promise<void> {
  const client = await subscribe(served, { query: EVEN, extensions: START });
  const start = await client.next();
  await publish(served, 1, 2);
  const position = await client.next();
  expect(position).toEqual({ data: null, extensions: { cursor: expect.any(String) } });
  expect(position.extensions?.cursor).not.toBe(start.extensions?.cursor);
  await client.close();
  // The history holds one event: only the newer position can be continued.
  await publish(served, 4, 5);
  const resumed = await subscribe(served, {
    query: EVEN,
    extensions: { after: position.extensions?.cursor },
  });
  expect((await resumed.next()).data).toEqual({ tick: 4 });
  const late = await subscribe(served, { query: EVEN, extensions: { after: start.extensions?.cursor } });
  expect((await late.next()).errors).toMatchObject([{ extensions: { code: 'EVENTS_MISSED' } }]);
}

describe('positions of filtered subscriptions', () => {
  const pubsub = { history: { length: 1 } };
  const timing = { attach: { ping: PATIENT }, pubsub };

  it.each(Object.entries(TRANSPORTS))(
    'the keep-alive of %s sends the position after events that a filter has left out',
    async (_name, subscribe) => {
      await expectPositionAfterOdd(await serve(timing), subscribe);
    },
  );

  it('a shared subscription sends its position to all members', async () => {
    const served = await serve({ ...timing, attach: { ...timing.attach, share: () => 'all' } });
    await expectPositionAfterOdd(served, socket);
  });

  it('a subscription sends its position once, and not after an event that has it', async () => {
    const served = await serve({ attach: { ping: 250 } });
    const client = await socket(served, { query: EVEN, extensions: START });
    await client.next();
    await publish(served, 1, 2);
    await client.next();
    await publish(served, 2, 3);
    expect((await client.next()).data).toEqual({ tick: 2 });
    await new Promise((resolve) => setTimeout(resolve, 800));
    expect(client.rest()).toEqual([]);
  });

  it('the keep-alive of server-sent events sends an id without an event to clients that did not ask', async () => {
    const served = await serve(timing);
    const params = { query: EVEN };
    const reading = await open(withParams(served.url, params), { headers: { accept: 'text/event-stream' } });
    await until(() => idsOf(reading.body).length === 1);
    await publish(served, 1, 2);
    await until(() => idsOf(reading.body).length === 2);
    expect(reading.body).not.toContain('data');
    reading.req.destroy();
  });
});

describe('close() with cursors', () => {
  it.each([MODERN, LEGACY])(
    'close() sends the newest position over %s before it closes with 1001',
    async (protocol) => {
      const served = await serve({ attach: { ping: false } });
      const client = await connect(served.socketUrl, protocol);
      client.send({ type: 'connection_init' });
      await client.until(({ type }) => type === 'connection_ack');
      const payload = { query: EVEN, extensions: START };
      client.send({ id: '1', type: protocol === MODERN ? 'subscribe' : 'start', payload });
      const isResult = ({ payload }: Record<string, unknown>): boolean =>
        JSON.stringify(payload ?? null).includes('cursor');
      const start = (await client.until(isResult)).at(-1);
      await publish(served, 1, 2);
      await served.subscriptions.close();
      const position = (await client.until(isResult)).at(-1);
      expect(position).not.toEqual(start);
      expect(position?.['payload']).toMatchObject({ data: null });
      expect(await client.closed).toMatchObject({ code: 1001 });
    },
  );

  it('close() of attachSubscriptions ends an event stream with its position and a random time for the next attempt, and its connection', async () => {
    const served = await serve({ attach: { ping: false } });
    const times = new Set<string>();
    const readings: Reading[] = [];
    for (let i = 0; i < 8; i++) {
      readings.push(
        await open(withParams(served.url, { query: EVEN }), { headers: { accept: 'text/event-stream' } }),
      );
    }
    await until(() => readings.every(({ body }) => idsOf(body).length === 1));
    await publish(served, 1, 2);
    await served.subscriptions.close();
    await until(() => readings.every(({ ended }) => ended));
    // On an open connection EventSource would come back to this process, which refuses it.
    await until(() => readings.every(({ req }) => req.socket?.destroyed === true));
    for (const { body } of readings) {
      const [, end, time] = /\n\nid: (\S+)\n\nretry: (\d+)\n\n$/.exec(body) ?? [];
      expect(end).not.toBe(idsOf(body)[0]);
      expect(Number(time)).toBeGreaterThanOrEqual(1000);
      expect(Number(time)).toBeLessThanOrEqual(4000);
      times.add(time as string);
    }
    expect(times.size).toBeGreaterThan(1);
  });

  it('clients continue on another server with the same key after close()', async () => {
    const before = await serve();
    const client = await socket(before, { query: EVEN, extensions: START });
    await client.next();
    await publish(before, 1, 3);
    const after = (await client.next()).extensions?.cursor;
    await before.close();
    await publish(before, 3, 5);
    const next = await serve({ events: before.events });
    const resumed = await socket(next, { query: EVEN, extensions: { after } });
    expect((await resumed.next()).data).toEqual({ tick: 4 });
  });
});

describe('merge before all of its topics have started', () => {
  it.each(Object.entries(TRANSPORTS))(
    'sends the start first over %s, and then the events with their cursors',
    async (_name, subscribe) => {
      const transport: EventTransport = new MemoryBroker().create();
      const { history } = transport;
      if (history === undefined) throw new Error('no history');
      let answer = (): void => undefined;
      const answered = new Promise<void>((resolve) => {
        answer = resolve;
      });
      const newest = history.newest.bind(history);
      let asked = 0;
      history.newest = async (channel, start) => {
        const id = await newest(channel, start);
        if (start !== undefined) asked++;
        if (channel.endsWith('tock')) await answered;
        return id;
      };
      const served = await serve({ events: createPubSub({ transport }) });
      const client = await subscribe(served, { query: 'subscription { both }', extensions: START });
      await until(() => asked === 2);
      await publish(served, 1, 3);
      answer();
      expect(await client.next()).toEqual({ data: null, extensions: { cursor: expect.any(String) } });
      for (const both of [1, 2]) {
        expect(await client.next()).toEqual({ data: { both }, extensions: { cursor: expect.any(String) } });
      }
      await client.close();
    },
  );
});
