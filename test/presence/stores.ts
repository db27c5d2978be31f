// What presence does over every transport.

import { type Member, type Presence, type PresenceChange, presence } from '../../middleware/presence.ts';
import type { PubSub } from '../../middleware/pubsub.ts';
import { accessOf } from '../../src/pubsub/presence-store.ts';
import { take } from '../pubsub/events.ts';

interface Data {
  readonly name: string;
}

/** The members whom a client knows that has all changes. */
export function fold<D>(changes: readonly PresenceChange<D>[]): Record<string, D> {
  const known = new Map<string, D>();
  for (const { joined, left } of changes) {
    for (const { id, data } of joined) known.set(id, data);
    for (const { id } of left) known.delete(id);
  }
  return Object.fromEntries(known);
}

export const byId = <D>(members: readonly Member<D>[]): Record<string, D> =>
  Object.fromEntries(members.map(({ id, data }) => [id, data]));

/** Waits until members are as expected. */
export async function seen<D>(room: Presence<D>, topic: string, expected: Record<string, D>): Promise<void> {
  const deadline = Date.now() + 20_000;
  const sorted = (record: object): string => JSON.stringify(Object.entries(record).sort());
  for (let found = ''; found !== sorted(expected); ) {
    found = sorted(byId(await room.members(topic).catch(() => [])));
    if (Date.now() > deadline) throw new Error(`never ${sorted(expected)}, but ${found}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Tests presence over two pubsubs, which may be the same one. */
export function describePresence(
  name: string,
  open: () => [PubSub<object>, PubSub<object>] | Promise<[PubSub<object>, PubSub<object>]>,
): void {
  describe(`presence over ${name}`, () => {
    let rooms: Presence<Data>[];
    let pubsubs: PubSub<object>[];
    beforeEach(async () => {
      pubsubs = await open();
      rooms = pubsubs.map((pubsub) => presence<Data>(pubsub, { ttl: 2000 }));
    });

    /** The rooms of two processes. */
    const both = (): [Presence<Data>, Presence<Data>] => rooms as [Presence<Data>, Presence<Data>];

    it('names the members of all processes, and streams who joins and leaves', async () => {
      const [here, there] = both();
      const stream = here.changes('photo');
      expect(await here.members('photo')).toEqual([]);
      const ada = there.join('photo', { id: 'ada', data: { name: 'Ada' } });
      expect(await take(stream, 1)).toEqual([{ joined: [{ id: 'ada', data: { name: 'Ada' } }], left: [] }]);
      here.join('photo', { id: 'bob', data: { name: 'Bob' } });
      expect(byId(await here.members('photo'))).toEqual({ ada: { name: 'Ada' }, bob: { name: 'Bob' } });
      await seen(there, 'photo', { ada: { name: 'Ada' }, bob: { name: 'Bob' } });
      ada.leave();
      ada.leave();
      await seen(here, 'photo', { bob: { name: 'Bob' } });
      const changes = await take(stream, 2);
      expect(changes).toEqual([
        { joined: [{ id: 'bob', data: { name: 'Bob' } }], left: [] },
        { joined: [], left: [{ id: 'ada', data: { name: 'Ada' } }] },
      ]);
      expect(await here.members('other')).toEqual([]);
      expect(await there.members('other')).toEqual([]);
    });

    it('merges the tabs of a member, whose data is that of the newest one', async () => {
      const [here, there] = both();
      const stream = here.changes('photo');
      await here.members('photo');
      const first = here.join('photo', { id: 'ada', data: { name: 'first' } });
      const same = here.join('photo', { id: 'ada', data: { name: 'first' } });
      await seen(there, 'photo', { ada: { name: 'first' } });
      // Later in milliseconds: the clock of the store tells which tab is newer.
      await new Promise((resolve) => setTimeout(resolve, 5));
      const second = there.join('photo', { id: 'ada', data: { name: 'second' } });
      await seen(here, 'photo', { ada: { name: 'second' } });
      second.update({ name: 'third' });
      await seen(here, 'photo', { ada: { name: 'third' } });
      second.leave();
      await seen(here, 'photo', { ada: { name: 'first' } });
      same.leave();
      await seen(there, 'photo', { ada: { name: 'first' } });
      first.leave();
      await seen(there, 'photo', {});
      const changes = await take(stream, 5);
      expect(changes.map(({ joined, left }) => [joined[0]?.data.name, left[0]?.data.name])).toEqual([
        ['first', undefined],
        ['second', undefined],
        ['third', undefined],
        ['first', undefined],
        [undefined, 'first'],
      ]);
    });

    it('streams no change when the older tab of a member leaves', async () => {
      const [here, there] = both();
      const stream = here.changes('photo');
      await here.members('photo');
      const older = here.join('photo', { id: 'ada', data: { name: 'older' } });
      await seen(there, 'photo', { ada: { name: 'older' } });
      there.join('photo', { id: 'ada', data: { name: 'newer' } });
      await seen(here, 'photo', { ada: { name: 'newer' } });
      older.leave();
      expect(byId(await here.members('photo'))).toEqual({ ada: { name: 'newer' } });
      there.join('photo', { id: 'bob', data: { name: 'Bob' } });
      const changes = await take(stream, 3);
      expect(changes.map(({ joined }) => joined[0]?.data.name)).toEqual(['older', 'newer', 'Bob']);
    });

    it('keeps a member for as long as a stream is open', async () => {
      const [here, there] = both();
      const changes = here.changes('photo');
      const stream = here.during('photo', { id: 'ada', data: { name: 'Ada' } }, changes);
      await seen(there, 'photo', { ada: { name: 'Ada' } });
      const next = stream.next();
      await stream.return();
      await seen(there, 'photo', {});
      expect((await Promise.all([next, changes.next()])).some(({ done }) => done)).toBe(true);
    });

    it('continues after a cursor with those who have left meanwhile', async () => {
      const [here, there] = both();
      const stream = here.changes('photo');
      await here.members('photo');
      const ada = there.join('photo', { id: 'ada', data: { name: 'Ada' } });
      await take(stream, 1);
      const after = stream.position;
      if (after === undefined) return;
      await stream.return();
      ada.leave();
      await seen(there, 'photo', {});
      const changes = await take(there.changes('photo', { after }), 2);
      expect(changes.map(({ joined, left }) => [joined.length, left[0]?.data.name])).toEqual([
        [1, undefined],
        [0, 'Ada'],
      ]);
    });

    it('sends ids and data of any characters as they are', async () => {
      const [here, there] = both();
      const members: Record<string, object> = {
        '"\\/\u0001\u2028é😀': { list: [], object: {}, number: 1e21, small: 1.5e-9, text: '\u0000\ud800' },
        __proto__x: { nested: [[{}]] },
        '1': { name: '' },
      };
      for (const [id, data] of Object.entries(members)) here.join('p"h\\o t😀', { id, data: data as Data });
      await seen(there, 'p"h\\o t😀', members as Record<string, Data>);
    });

    it('merges what two processes say of one member at the same moment', async () => {
      const [here, there] = both();
      const stream = here.changes('photo');
      await here.members('photo');
      for (let round = 1; round <= 10; round++) {
        const tabs = [here, there].map((room) =>
          room.join('photo', { id: 'ada', data: { name: `${round}` } }),
        );
        expect(byId(await here.members('photo'))).toEqual({ ada: { name: `${round}` } });
        expect(byId(await there.members('photo'))).toEqual({ ada: { name: `${round}` } });
        for (const tab of tabs) tab.leave();
        await seen(there, 'photo', {});
      }
      const changes: PresenceChange<Data>[] = [];
      while (changes.filter(({ left }) => left.length > 0).length < 10)
        changes.push(...(await take(stream, 1)));
      expect(fold(changes)).toEqual({});
      expect(changes.every(({ joined, left }) => joined.length + left.length === 1)).toBe(true);
    });

    it('takes a write only if nobody has changed its texts since it was read', async () => {
      const [pubsub] = pubsubs;
      const store = pubsub && accessOf(pubsub)?.presence;
      if (store === undefined) throw new Error('no store');
      const change = (was: string, is: string) =>
        store.write(
          'room',
          [
            ['p1', was, is],
            ['mada', was, is],
          ],
          undefined,
        );
      expect(await change('', 'first')).toBe(true);
      expect(await change('', 'late')).toBe(false);
      expect([...(await store.read('room')).texts].sort()).toEqual([
        ['mada', 'first'],
        ['p1', 'first'],
      ]);
      expect([...(await store.read('room', ['mbob'])).texts].filter(([, text]) => text !== '')).toEqual(
        store.epoch === undefined ? [['p1', 'first']] : [],
      );
      expect(await change('first', '')).toBe(true);
      expect([...(await store.read('room')).texts]).toEqual([]);
    });

    it('leaves nothing in the store when everybody has left', async () => {
      const [here, there] = both();
      const stream = here.changes('photo');
      const ada = there.join('photo', { id: 'ada', data: { name: 'Ada' } });
      await seen(here, 'photo', { ada: { name: 'Ada' } });
      ada.leave();
      await stream.return();
      const access = pubsubs[0] && accessOf(pubsubs[0]);
      const store = access?.presence;
      const channel = access?.channelOf(`presence:${store?.epoch ?? ''}photo`) ?? '';
      while (((await store?.read(channel))?.texts.size ?? 0) > 0) await new Promise(setImmediate);
    });

    it('takes the members of a process out when its pubsub is closed', async () => {
      const [here, there] = both();
      if (pubsubs[0] === pubsubs[1]) return;
      const stream = there.changes('photo');
      await there.members('photo');
      for (let number = 0; number < 3; number++)
        here.join('photo', { id: `${number}`, data: { name: 'Ada' } });
      await seen(there, 'photo', { 0: { name: 'Ada' }, 1: { name: 'Ada' }, 2: { name: 'Ada' } });
      await pubsubs[0]?.close();
      expect(await there.members('photo')).toEqual([]);
      const changes = await take(stream, 2);
      expect(changes.map(({ joined, left }) => [joined.length, left.length])).toEqual([
        [3, 0],
        [0, 3],
      ]);
    });
  });
}
