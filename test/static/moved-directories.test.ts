import { renameSync, rmSync, symlinkSync } from 'node:fs';
import { staticFiles } from '../../middleware/static.ts';
import { createBreaker } from '../../src/static/cache/circuit-breaker.ts';
import { createMemory, type Slot } from '../../src/static/cache/file-cache.ts';
import { localDeviceOf } from '../../src/static/cache/local-device.ts';
import { isFresh, type LookupContext, revalidate } from '../../src/static/cache/revalidate.ts';
import { type Found, isInPlace, load } from '../../src/static/file/load.ts';
import { resolveStaticOptions } from '../../src/static/options.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

describe.each([
  ['in memory', 1000],
  ['streamed', 400_000],
])('a directory behind a link may be moved, files %s', (_how, size) => {
  it.each([
    ['below the root', 'www', '/link/a.bin'],
    ['as the root', 'www/link', '/a.bin'],
  ])('%s', async (_where, root, path) => {
    const folder = makeFolder({ 'www/one/a.bin': Buffer.alloc(size, 'x') });
    symlinkSync('one', `${folder}/www/link`);
    const port = await listen(bare(staticFiles(`${folder}/${root}`)));
    expect((await get(port, path)).status).toBe(200);
    // The link is switched to the same files, which no look at them tells.
    renameSync(`${folder}/www/one`, `${folder}/www/two`);
    rmSync(`${folder}/www/link`);
    symlinkSync('two', `${folder}/www/link`);
    for (let i = 0; i < 3; i++) expect((await get(port, path)).status).toBe(200);
  });
});

describe('the way to a remembered file', () => {
  const site = { 'www/dir/a.js': 'a', 'www/dir/a.js.br': 'b', 'www/other/a.js.br': 'b' };

  /** Looks at one path below `www`, remembered until it is old enough to be compared with what was seen. */
  async function remember(folder: string) {
    const root = `${folder}/www`;
    const settings = resolveStaticOptions({ precompressed: ['br'] });
    const context: LookupContext = {
      load: (key) => load(root, key, settings),
      isInPlace: (entry) => isInPlace(root, entry, settings),
      memory: createMemory(settings.cache),
      device: localDeviceOf(root),
      breaker: createBreaker(() => 0),
      window: 0,
      kept: () => {},
    };
    const slot = context.memory.slotOf('/dir/a.js');
    const look = (): Promise<Found | undefined> =>
      new Promise((done, fail) =>
        revalidate(context, slot, (error, found) => (error ? fail(error) : done(found))),
      );
    do await look();
    while (slot.entry?.young !== false);
    return { context, slot, look };
  }

  /** As if the time for which it counts as resolved had passed. */
  const expire = (slot: Slot): void => {
    slot.resolvedUntil = 0;
  };

  it('is resolved again from time to time, by a thread, and is the same', async () => {
    const { context, slot, look } = await remember(makeFolder(site));
    const { entry } = slot;
    expect(slot.resolvedUntil).toBeGreaterThan(performance.now());
    expire(slot);
    expect(isFresh(context, slot, performance.now())).toBe(false);
    expect(await look()).toBe(entry);
    expect(slot.resolvedUntil).toBeGreaterThan(performance.now());
  });

  it.each([
    ['its directory is moved out of the root', 'www/dir', 'out', 'missing'],
    ['its directory is moved inside the root', 'www/dir', 'www/moved', 'entry'],
    ['the root is moved', 'www', 'moved', 'entry'],
  ])('is found anew when %s and linked back', async (_what, from, to, kind) => {
    const folder = makeFolder(site);
    const { slot, look } = await remember(folder);
    const { entry } = slot;
    renameSync(`${folder}/${from}`, `${folder}/${to}`);
    symlinkSync(`${folder}/${to}`, `${folder}/${from}`);
    expire(slot);
    const found = await look();
    expect(found?.kind).toBe(kind);
    expect(found).not.toBe(entry);
  });

  it('counts for its siblings too', async () => {
    const folder = makeFolder(site);
    rmSync(`${folder}/www/dir/a.js.br`);
    symlinkSync('../other/a.js.br', `${folder}/www/dir/a.js.br`);
    const { slot, look } = await remember(folder);
    expect(slot.entry?.coded).toHaveLength(1);
    renameSync(`${folder}/www/other`, `${folder}/out`);
    symlinkSync(`${folder}/out`, `${folder}/www/other`);
    expire(slot);
    expect(await look()).toMatchObject({ kind: 'entry', coded: [] });
  });
});
