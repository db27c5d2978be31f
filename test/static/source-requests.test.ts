/** @tags node */
import { setTimeout } from 'node:timers/promises';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticSource } from '../../types/sources.ts';
import { bare, get, listen } from './fixture.ts';

/** A source whose `stat` takes a few milliseconds, like that of a remote store. */
function remote(files: StaticSource): StaticSource & { calls: number } {
  const source = {
    calls: 0,
    async stat(path: string) {
      source.calls++;
      await setTimeout(5);
      return files.stat(path);
    },
    open: files.open,
    list: files.list,
  };
  return source;
}

it.each([
  ['404', '/missing', 404],
  ['a redirect', '/docs', 301],
  ['the fallback page', '/route', 200],
])(
  'staticFiles sends %s to each of 60 simultaneous requests for a path of a remote source',
  async (_what, path, status) => {
    const source = remote(memoryFiles({ 'docs/index.html': 'docs', 'index.html': 'home' }));
    const port = await listen(bare(staticFiles(source, { html: true, fallback: 'index.html' })));
    const headers = { Accept: status === 404 ? '*/*' : 'text/html' };
    const responses = await Promise.all(Array.from({ length: 60 }, () => get(port, path, headers)));
    expect(new Set(responses.map((response) => response.status))).toEqual(new Set([status]));
  },
);

it('staticFiles finds a file of a source that is added while requests wait for its path', async () => {
  const files = memoryFiles();
  const port = await listen(bare(staticFiles(remote(files))));
  const early = Array.from({ length: 10 }, () => get(port, '/new.txt'));
  await setTimeout(2);
  files.set('new.txt', 'new');
  const late = await Promise.all(Array.from({ length: 10 }, () => get(port, '/new.txt')));
  expect(late.map(({ text }) => text)).toEqual(Array.from({ length: 10 }, () => 'new'));
  await Promise.all(early);
});

it('a source that fails answers each request, and is asked again by the next one', async () => {
  let isDown = true;
  const source: StaticSource = {
    stat: async () => {
      if (isDown) throw new Error('the store is down');
      return { size: 1, version: '1' };
    },
    open: () => Buffer.from('x'),
    list: () => [],
  };
  const port = await listen(bare(staticFiles(source)));
  const failed = await Promise.all([1, 2, 3].map(() => get(port, '/a.txt')));
  expect(failed.map(({ status }) => status)).toEqual([500, 500, 500]);
  isDown = false;
  expect((await get(port, '/a.txt')).text).toBe('x');
});
