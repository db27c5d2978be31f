/** @tags once */
import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import express, { type Request } from 'express';
import { staticFiles } from '../../middleware/static.ts';
import { readProcessStats } from '../../src/diagnostics/stats.ts';
import type { RootChooser, StaticFilesOptions } from '../../types/static.ts';
import { descriptorsIn } from '../descriptors.ts';
import { until } from '../until.ts';
import { bare, get, listen, makeFolder, put } from './fixture.ts';

const FILES = {
  'previews/pr-1/index.html': 'one',
  'previews/pr-1/big.bin': Buffer.alloc(400_000, 1),
  'previews/pr-2/index.html': 'two',
  'previews/.git/index.html': 'git',
  'previews/file': 'file',
  'secret/index.html': 'secret',
  'previews-old/index.html': 'old',
};
const byHost: RootChooser = ({ headers }) => String(headers.host).split('.preview.example')[0];

async function start(
  choose: RootChooser = byHost,
  options: Omit<StaticFilesOptions, 'roots'> = {},
): Promise<{
  port: number;
  parent: string;
  close: () => void;
  ask: (host: string, path?: string) => Promise<string>;
}> {
  const parent = join(makeFolder(FILES), 'previews');
  const files = staticFiles(choose, { html: true, ...options, roots: parent });
  const port = await listen(bare(files));
  const ask = async (host: string, path = '/'): Promise<string> => (await get(port, path, { host })).text;
  return { port, parent, close: () => files.close(), ask };
}

describe('staticFiles with a function', () => {
  it('each request gets the files of the folder that the function names', async () => {
    const { ask } = await start();
    expect(await ask('pr-1.preview.example')).toBe('one');
    expect(await ask('pr-2.preview.example')).toBe('two');
    expect(await ask('pr-3.preview.example')).toBe('passed on');
  });

  it('a folder that appears is served at once, one that is removed is not, and a new one has its own bytes', async () => {
    const { ask, parent } = await start(byHost, { fallback: 'index.html' });
    expect(await ask('new.preview.example')).toBe('passed on');
    put(join(parent, 'new/index.html'), 'new');
    expect(await ask('new.preview.example')).toBe('new');
    rmSync(join(parent, 'new'), { recursive: true });
    expect(await ask('new.preview.example')).toBe('passed on');
    put(join(parent, 'new/index.html'), 'newer');
    expect(await ask('new.preview.example')).toBe('newer');
    renameSync(join(parent, 'new'), join(parent, 'old'));
    renameSync(join(parent, 'pr-1'), join(parent, 'new'));
    expect(await ask('new.preview.example')).toBe('one');
    expect(await ask('old.preview.example')).toBe('newer');
  });

  it.each([
    '..',
    '.',
    '',
    '../secret',
    '..\\secret',
    'pr-1/../../secret',
    'pr-1/../../previews-old',
    '../previews-old',
    '../previews',
    '/',
    '//',
    '.git',
    'pr-1/.git',
    'pr-1\0',
    'pr-1%00',
    '%2e%2e',
    'file',
    'file/x',
    'pr-1\\',
    'pr-1\n',
    'out',
    'x'.repeat(5000),
  ])('the name %j of a request reaches no file', async (name) => {
    const { parent } = await start();
    symlinkSync(join(parent, '../secret'), join(parent, 'out'));
    const files = staticFiles(() => name, { html: true, roots: parent });
    expect((await get(await listen(bare(files)), '/')).text).toBe('passed on');
    for (const made of [join(parent, name), `${parent}/${name}`]) {
      if (/^(?:pr-1)?$/.test(made.slice(parent.length + 1).replace(/\/$/, ''))) continue;
      const joined = staticFiles(() => made, { html: true, roots: parent });
      expect((await get(await listen(bare(joined)), '/')).text).toBe('passed on');
    }
  });

  it('a link out of the parent is followed with symlinks: follow only', async () => {
    const { ask, parent } = await start(byHost, { symlinks: 'follow' });
    symlinkSync(join(parent, '../secret'), join(parent, 'out'));
    expect(await ask('out.preview.example')).toBe('secret');
  });

  it('absolute paths, file URLs and promises name a folder too', async () => {
    for (const make of [
      (parent: string) => join(parent, 'pr-1'),
      (parent: string) => pathToFileURL(join(parent, 'pr-1')),
      async (parent: string) => join(parent, 'pr-1/'),
    ]) {
      let parent = '';
      const { ask, ...started } = await start(() => make(parent));
      parent = started.parent;
      expect(await ask('x')).toBe('one');
    }
  });

  it('undefined matches no file, and with fallthrough: false it is a 404', async () => {
    const { ask } = await start(() => undefined);
    expect(await ask('x')).toBe('passed on');
    const strict = await start(() => undefined, { fallthrough: false });
    expect((await get(strict.port, '/')).text).toBe('NotFoundError: Not Found');
  });

  it.each([
    [
      'an exception',
      () => {
        throw new Error('no database');
      },
      'Error: no database',
    ],
    ['a rejection', () => Promise.reject(new Error('no database')), 'Error: no database'],
    ['a URL of another scheme', () => new URL('https://example.com/x'), /option "dir" returned/],
  ] as const)('%s of the function goes to next(error)', async (_what, choose, text) => {
    const { port } = await start(choose);
    const response = await get(port, '/');
    expect(response.status).toBe(500);
    expect(response.text).toMatch(text);
  });

  it('at most 100 folders stay open, the most recently used ones', async () => {
    const before = readProcessStats().files.entries;
    const { ask, parent } = await start(byHost, { cache: { maxBytes: '10mb' } });
    for (let n = 1; n <= 103; n++) put(join(parent, `pr-${n}/index.html`), `pr ${n}`);
    for (let round = 0; round < 2; round++)
      for (let n = 1; n <= 103; n++) expect(await ask(`pr-${n}.preview.example`)).toBe(`pr ${n}`);
    expect(readProcessStats().files.entries - before).toBe(100);
  });

  it('two middlewares on one parent keep the memory of their limit, and close() returns it', async () => {
    const before = readProcessStats().files.entries;
    const { ask, parent, close } = await start(byHost, { cache: { maxBytes: '20mb' } });
    for (let n = 1; n <= 5; n++) {
      put(join(parent, `pr-${n}/index.html`), `pr ${n}`);
      await ask(`pr-${n}.preview.example`);
    }
    expect(readProcessStats().files.entries - before).toBe(5);
    rmSync(join(parent, 'pr-5'), { recursive: true });
    await ask('pr-5.preview.example');
    await until(() => readProcessStats().files.entries - before === 4);
    close();
    expect(readProcessStats().files.entries).toBe(before);
    expect(await ask('pr-4.preview.example')).toBe('passed on');
  });

  it('a folder that is gone is let go when another one opens', async () => {
    const before = readProcessStats().files.entries;
    const { ask, parent } = await start(byHost, { cache: { maxBytes: '20mb' } });
    await ask('pr-1.preview.example');
    rmSync(join(parent, 'pr-1'), { recursive: true });
    await ask('pr-2.preview.example');
    await until(() => readProcessStats().files.entries - before === 1);
  });

  it('no descriptor stays open after folders have changed during downloads', async () => {
    const { port, parent, close } = await start(byHost, { cache: false });
    for (let i = 0; i < 5; i++) {
      const downloads = [1, 2, 1, 2].map((n) => get(port, '/big.bin', { host: `pr-${n}.preview.example` }));
      rmSync(join(parent, 'pr-2'), { recursive: true, force: true });
      mkdirSync(join(parent, 'pr-2'));
      put(join(parent, 'pr-2/big.bin'), Buffer.alloc(300_000, 2));
      await Promise.allSettled(downloads);
    }
    close();
    await until(() => descriptorsIn(parent) === 0);
  });

  it('redirects start at the mount, and the parameter may be a Request of Express', async () => {
    const parent = join(makeFolder({ 'p/a/docs/index.html': 'docs' }), 'p');
    const app = express();
    app.use(
      '/sites',
      staticFiles((request: Request) => request.hostname, { html: true, roots: parent }),
    );
    const port = await listen(app);
    expect((await get(port, '/sites/docs', { host: 'a' })).headers.location).toBe('./docs/');
    expect((await get(port, '/sites/docs/', { host: 'a' })).text).toBe('docs');
  });
});

it('close() of the middleware of a directory returns its memory, and later requests are passed on', async () => {
  const files = staticFiles(makeFolder({ 'a.txt': 'a' }), { cache: { maxBytes: '1mb' } });
  const port = await listen(bare(files));
  expect((await get(port, '/a.txt')).text).toBe('a');
  files.close();
  expect((await get(port, '/a.txt')).text).toBe('passed on');
});
