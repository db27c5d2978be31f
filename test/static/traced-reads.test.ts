/** @tags node */
import { createHash } from 'node:crypto';
import fs, { renameSync, utimesSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { bare, get, listen, makeFolder, put } from './fixture.ts';

const SIZE = 700_000;
const OLD = new Date('2020-01-01');

/** A file that differs from the others after its first 600 kB only. */
const content = (end: string): Buffer =>
  Buffer.concat([Buffer.alloc(600_000, 'x'), Buffer.alloc(100_000, end)]);
const etagOf = (body: Buffer): string =>
  `"${body.length.toString(16)}-${createHash('sha1').update(body).digest('base64').slice(0, 27)}"`;

// Tracers such as newrelic replace `fs.read` before the application is loaded, without what `promisify` needs.
async function loadWithTracer(): Promise<typeof import('../../middleware/static.ts').staticFiles> {
  const { read } = fs;
  jest.spyOn(fs, 'read').mockImplementation((...args: unknown[]) => {
    Reflect.apply(read, fs, args);
  });
  return (await import('../../middleware/static.ts')).staticFiles;
}

it('staticFiles reads and hashes whole files when a tracer has replaced fs.read', async () => {
  const staticFiles = await loadWithTracer();
  const first = content('a');
  const copy = gzipSync(first, { level: 0 });
  const folder = makeFolder({ 'a.bin': first, 'b.bin': content('b'), 'c.js': first, 'c.js.gz': copy });
  for (const name of ['a.bin', 'b.bin', 'c.js', 'c.js.gz']) utimesSync(`${folder}/${name}`, OLD, OLD);
  const port = await listen(bare(staticFiles(folder, { precompressed: true })));
  for (const [name, end] of [
    ['a', 'a'],
    ['b', 'b'],
  ] as const) {
    expect((await get(port, `/${name}.bin`)).headers.etag).toBe(etagOf(content(end)));
  }
  const { headers } = await get(port, '/c.js', { 'Accept-Encoding': 'gzip' });
  expect(headers['content-encoding']).toBe('gzip');

  // After a change, the body of a file that is requested often is read with its metadata.
  for (let request = 0; request < 20; request++) await get(port, '/a.bin');
  put(`${folder}/new`, content('c'));
  utimesSync(`${folder}/new`, OLD, OLD);
  renameSync(`${folder}/new`, `${folder}/a.bin`);
  const { body, headers: replaced } = await get(port, '/a.bin');
  expect([body.length, body.equals(content('c')), replaced.etag]).toEqual([SIZE, true, etagOf(content('c'))]);
});
