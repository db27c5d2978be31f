/** @tags once slow */
import { createHmac } from 'node:crypto';
import type { ContextSource } from '../../../types/connect.ts';
import { until } from '../../until.ts';
import { KEY, publish, type Served, serve } from './serve.ts';
import { type Subscribe, TRANSPORTS } from './transports.ts';

const QUERY = 'subscription { tick }';

/** Returns a cursor that the server has sent to a user. */
async function cursorFor(
  served: Served,
  subscribe: Subscribe,
  user?: string,
  query = QUERY,
): Promise<string> {
  const client = await subscribe(served, { query, extensions: { after: null } }, user);
  const { extensions } = await client.next();
  await client.close();
  return extensions?.cursor as string;
}

const parts = (cursor: string): [string, string, string] => cursor.split('.') as [string, string, string];
const encode = (text: string): string => Buffer.from(text).toString('base64url');

describe.each(Object.entries(TRANSPORTS))('a refused cursor over %s', (_name, subscribe: Subscribe) => {
  const codeOf = async (
    served: Served,
    after: unknown,
    { query = QUERY, user }: { query?: string; user?: string } = {},
  ) => {
    const client = await subscribe(served, { query, extensions: { after } }, user);
    const { data, errors } = await client.next();
    await client.close();
    expect(data).toBeUndefined();
    expect(errors?.[0]?.extensions?.['refetch']).toBe(true);
    return errors?.[0]?.extensions?.['code'];
  };

  it('a forged or malformed cursor is refused with CURSOR_INVALID, and no source is opened', async () => {
    const served = await serve();
    const cursor = await cursorFor(served, subscribe);
    const [position, expiry, signature] = parts(cursor);
    const opened = served.opened();
    const forged: unknown[] = [
      `${encode('tick=1-1')}.${expiry}.${signature}`,
      `${position}.zzzzzzz.${signature}`,
      `${position}.${expiry}.${createHmac('sha256', 'x').update('x').digest('base64url').slice(0, 22)}`,
      `${position}.${expiry}`,
      `${position}.${expiry}.`,
      `${cursor}.`,
      '',
      '..',
      'x'.repeat(100_000),
      1,
      true,
      {},
      [cursor],
    ];
    for (const after of forged) expect(await codeOf(served, after)).toBe('CURSOR_INVALID');
    expect(served.opened()).toBe(opened);
  });

  it('the cursor of another user, operation or document is refused with CURSOR_INVALID', async () => {
    const served = await serve();
    const cursor = await cursorFor(served, subscribe, 'ann');
    expect(await codeOf(served, cursor, { user: 'bob' })).toBe('CURSOR_INVALID');
    expect(await codeOf(served, cursor)).toBe('CURSOR_INVALID');
    expect(await codeOf(served, cursor, { user: 'ann', query: 'subscription { both }' })).toBe(
      'CURSOR_INVALID',
    );
    expect(await codeOf(served, cursor, { user: 'ann', query: 'subscription { tick(of: 1) }' })).toBe(
      'CURSOR_INVALID',
    );
    const resumed = await subscribe(served, { query: QUERY, extensions: { after: cursor } }, 'ann');
    await publish(served, 0, 1);
    expect((await resumed.next()).data).toEqual({ tick: 0 });
  });

  it('a cursor is bound to the user of the option cursors.user, whoever is the caller', async () => {
    const user = (_source: unknown, context: unknown): string => String(Object(context).user).charAt(0);
    const served = await serve({ cursors: { key: KEY, user } });
    const cursor = await cursorFor(served, subscribe, 'ann');
    expect(await codeOf(served, cursor, { user: 'bob' })).toBe('CURSOR_INVALID');
    const resumed = await subscribe(served, { query: QUERY, extensions: { after: cursor } }, 'alan');
    await publish(served, 0, 1);
    expect((await resumed.next()).data).toEqual({ tick: 0 });
  });

  it('the function cursors.user gets the headers of the request or the upgrade without other functions', async () => {
    const user = ({ headers }: ContextSource): string => String(headers.host !== undefined);
    const graphql = { caller: undefined, context: undefined };
    const served = await serve({ graphql, cursors: { key: KEY, user } });
    const cursor = await cursorFor(served, subscribe);
    const same = await serve({ graphql, events: served.events, cursors: { key: KEY, user: () => 'true' } });
    const resumed = await subscribe(same, { query: QUERY, extensions: { after: cursor } });
    await publish(same, 0, 1);
    expect(await resumed.next()).toMatchObject({ extensions: { cursor: expect.any(String) } });
  });

  it.each([[() => Promise.resolve('ann')], [() => ({})], [() => 1]])(
    'a function cursors.user that returns a wrong value fails the operation, not the server',
    async (user) => {
      const served = await serve({ cursors: { key: KEY, user: user as () => string } });
      for (let attempt = 0; attempt < 2; attempt++) {
        const client = await subscribe(served, { query: QUERY });
        expect((await client.next()).errors).toMatchObject([
          { extensions: { code: 'INTERNAL_SERVER_ERROR' } },
        ]);
        await client.close();
      }
    },
  );

  it('a cursor of another key is refused, and the cursors of an earlier key are accepted', async () => {
    const [other, old, current] = ['1', '2', '3'].map((letter) => letter.repeat(32)) as [
      string,
      string,
      string,
    ];
    const before = await serve({ cursors: { key: old } });
    const cursor = await cursorFor(before, subscribe);
    const { events } = before;
    const rotated = await serve({ events, cursors: { key: [current, old] } });
    const resumed = await subscribe(rotated, { query: QUERY, extensions: { after: cursor } });
    await publish(rotated, 0, 1);
    const result = await resumed.next();
    expect(result.data).toEqual({ tick: 0 });
    const later = await serve({ events, cursors: { key: current } });
    expect(await codeOf(later, cursor)).toBe('CURSOR_INVALID');
    const again = await subscribe(later, { query: QUERY, extensions: { after: result.extensions?.cursor } });
    await publish(later, 1, 2);
    expect((await again.next()).data).toEqual({ tick: 1 });
    expect(await codeOf(await serve({ events, cursors: { key: other } }), cursor)).toBe('CURSOR_INVALID');
  });

  it('an expired cursor is refused with CURSOR_EXPIRED', async () => {
    const served = await serve({ cursors: { key: KEY, maxAge: 1 } });
    const cursor = await cursorFor(served, subscribe);
    const expiry = Number.parseInt(parts(cursor)[1], 36);
    await until(() => Date.now() / 1000 >= expiry + 1);
    expect(await codeOf(served, cursor)).toBe('CURSOR_EXPIRED');
  });

  it('a source that does not continue after the cursor ends with EVENTS_MISSED instead of a gap', async () => {
    const before = await serve();
    const cursor = await cursorFor(before, subscribe);
    // The same operation gets a source without a history.
    const after = await serve({ pubsub: { history: undefined } });
    expect(await codeOf(after, cursor)).toBe('EVENTS_MISSED');
  });
});
