/** @tags node graphql */
import fc from 'fast-check';
import { numbers } from '../../pubsub/events.ts';
import { TEST_ALL } from '../../test-all.ts';
import { until } from '../../until.ts';
import { publish, type Served, serve } from './serve.ts';
import { type Subscribe, type Subscriber, TRANSPORTS } from './transports.ts';

const QUERY = 'subscription { tick }';
const attach = { share: () => 'all', ping: false as const };
const socket = TRANSPORTS['graphql-transport-ws'] as Subscribe;

const startAfter = (served: Served, after: string | null): Promise<Subscriber> =>
  socket(served, { query: QUERY, extensions: { after } });

/** Subscribes and returns the cursors of the start and of the events. */
async function cursorsOf(served: Served, count: number): Promise<string[]> {
  const client = await startAfter(served, null);
  const cursors = [(await client.next()).extensions?.cursor as string];
  await publish(served, 0, count);
  while (cursors.length <= count) cursors.push((await client.next()).extensions?.cursor as string);
  await client.close();
  return cursors;
}

async function ticks(client: Subscriber, count: number): Promise<unknown[]> {
  const taken: unknown[] = [];
  while (taken.length < count) {
    const { data } = await client.next();
    if (data !== null) taken.push(data?.['tick']);
  }
  return taken;
}

// The thorough pass has more cases of the last test only.
if (!TEST_ALL) describe('shared subscriptions with cursors', tests);

function tests(): void {
  it('clients with the same cursor share one execution per live event after their replays', async () => {
    const served = await serve({ attach });
    const cursors = await cursorsOf(served, 20);
    const clients = await Promise.all(numbers(0, 30).map(() => startAfter(served, cursors[5] as string)));
    for (const client of clients) expect(await ticks(client, 15)).toEqual(numbers(5, 20));
    await until(() => served.subscriptions.stats().groups === 1);
    const executed = served.executions.length;
    await publish(served, 20, 25);
    for (const client of clients) expect(await ticks(client, 5)).toEqual(numbers(20, 25));
    expect(served.executions.length).toBe(executed + 5);
    expect(served.subscriptions.stats()).toMatchObject({ operations: 30, groups: 1, sources: 1 });
  });

  it('clients with different cursors become members of one group when they have caught up', async () => {
    const served = await serve({ attach });
    const cursors = await cursorsOf(served, 10);
    const clients = await Promise.all(cursors.map((cursor) => startAfter(served, cursor)));
    for (const [index, client] of clients.entries())
      expect(await ticks(client, 10 - index)).toEqual(numbers(index, 10));
    await until(() => served.subscriptions.stats().groups === 1);
    const executed = served.executions.length;
    await publish(served, 10, 13);
    for (const client of clients) expect(await ticks(client, 3)).toEqual(numbers(10, 13));
    expect(served.executions.length).toBe(executed + 3);
  });

  it('a client with the newest cursor joins the live group without a replay', async () => {
    const served = await serve({ attach });
    const first = await startAfter(served, null);
    await first.next();
    await publish(served, 0, 3);
    await ticks(first, 2);
    const newest = (await first.next()).extensions?.cursor as string;
    const opened = served.opened();
    const second = await startAfter(served, newest);
    await until(() => served.subscriptions.stats().operations === 2);
    await publish(served, 3, 5);
    for (const client of [first, second]) expect(await ticks(client, 2)).toEqual([3, 4]);
    expect(served.opened()).toBe(opened);
  });

  it('a replay that is too old ends with EVENTS_MISSED and does not affect the live members', async () => {
    const served = await serve({ attach, pubsub: { history: { length: 3 } } });
    const cursors = await cursorsOf(served, 10);
    const live = await startAfter(served, null);
    await live.next();
    const late = await startAfter(served, cursors[0] as string);
    expect((await late.next()).errors).toMatchObject([{ extensions: { code: 'EVENTS_MISSED' } }]);
    await publish(served, 10, 12);
    expect(await ticks(live, 2)).toEqual([10, 11]);
  });

  it('the cursor of one share key is refused for another one', async () => {
    const served = await serve({ attach: { ...attach, share: (context: { user: string }) => context.user } });
    const client = await socket(served, { query: QUERY, extensions: { after: null } }, 'ann');
    const after = (await client.next()).extensions?.cursor;
    const other = await socket(served, { query: QUERY, extensions: { after } }, 'bob');
    expect((await other.next()).errors).toMatchObject([{ extensions: { code: 'CURSOR_INVALID' } }]);
    const same = await socket(served, { query: QUERY, extensions: { after } }, 'ann');
    await publish(served, 0, 1);
    expect(await ticks(same, 1)).toEqual([0]);
  });

  it('a replay is released with its client', async () => {
    const served = await serve({ attach });
    const cursors = await cursorsOf(served, 3);
    const client = await startAfter(served, cursors[0] as string);
    await client.close();
    await until(() => served.subscriptions.stats().groups === 0);
    expect(served.subscriptions.stats()).toMatchObject({ sources: 0, unreleased: 0 });
  });
}

it('members of a group receive consecutive events for all interleavings of publishes, subscribes and unsubscribes', async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('publish' as const), count: fc.integer({ min: 1, max: 20 }) }),
    fc.record({ kind: fc.constant('open' as const), from: fc.nat(200) }),
    fc.record({ kind: fc.constant('leave' as const), client: fc.nat(8) }),
    fc.record({ kind: fc.constant('wait' as const), time: fc.nat(70) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.boolean(), async (steps, isShared) => {
      const served = await serve({ attach: { ...attach, share: () => (isShared ? 'all' : undefined) } });
      const cursors = await cursorsOf(served, 1);
      const clients: { client: Subscriber; from: number; isNew: boolean }[] = [];
      let published = 1;
      const observer = await startAfter(served, cursors[1] as string);
      for (const entry of steps) {
        if (entry.kind === 'publish') {
          await publish(served, published, published + entry.count);
          published += entry.count;
          while (cursors.length <= published)
            cursors.push((await observer.next()).extensions?.cursor as string);
        } else if (entry.kind === 'open') {
          const from = entry.from % cursors.length;
          const after = entry.from > 150 ? null : (cursors[from] as string);
          const client = await startAfter(served, after);
          if (after === null) await client.next();
          clients.push({ client, from: after === null ? published : from, isNew: after === null });
        } else if (entry.kind === 'leave') {
          const [left] = clients.splice(entry.client, 1);
          await left?.client.close();
        } else await new Promise((resolve) => setTimeout(resolve, entry.time));
      }
      await publish(served, published, ++published);
      for (const { client, from } of clients)
        expect(await ticks(client, published - from)).toEqual(numbers(from, published));
      for (const { client } of clients) await client.close();
      await observer.close();
    }),
    { numRuns: TEST_ALL ? 50 : 15 },
  );
});
