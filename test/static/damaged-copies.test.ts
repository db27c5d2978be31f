/** @tags once */
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { staticFiles } from '../../middleware/static.ts';
import { compareCopy } from '../../src/static/copies.ts';
import type { Snapshot } from '../../src/static/files.ts';
import { takeSnapshot } from '../../src/static/load.ts';
import type { OpenFile } from '../../src/static/open-file.ts';
import { resolveStaticOptions } from '../../src/static/options.ts';
import { openRealPath } from '../../src/static/root.ts';
import { bare, get, listen, makeFolder, put } from './fixture.ts';

const settings = resolveStaticOptions({ precompressed: true });
const LARGE = Buffer.alloc(1 << 20, 'a line of text\n');

async function openWithSnapshot(path: string): Promise<{ file: OpenFile; snapshot: Snapshot }> {
  const file = await openRealPath(path);
  const snapshot = file && (await takeSnapshot(file, settings, { isPopular: false }));
  if (file === undefined || snapshot === undefined || snapshot === 'not-a-file') throw new Error(path);
  return { file, snapshot };
}

// A second close would hit a file or a socket of another request that has got the same descriptor.
it.each([
  ['is not compressed', Buffer.alloc(200_000, 'not compressed')],
  ['is cut', gzipSync(LARGE, { level: 0 }).subarray(0, 600_000)],
  ['is longer than its source', gzipSync(Buffer.concat([LARGE, LARGE]), { level: 0 })],
  ['has other content', gzipSync(Buffer.alloc(LARGE.length, 'other'), { level: 0 })],
  ['belongs to its source', gzipSync(LARGE, { level: 0 })],
])('the descriptor of a large copy that %s stays open after the comparison', async (_what, bytes) => {
  const folder = makeFolder({ 'a.txt': LARGE, 'a.txt.gz': bytes });
  await new Promise((done) => setTimeout(done, 50));
  const source = await openWithSnapshot(`${folder}/a.txt`);
  const { file, snapshot: copy } = await openWithSnapshot(`${folder}/a.txt.gz`);
  const reason = await compareCopy({ file, copy, coding: 'gzip', source: source.snapshot });
  expect(reason === undefined).toBe(bytes.equals(gzipSync(LARGE, { level: 0 })));
  await new Promise((done) => setTimeout(done, 20));
  expect((await file.version())?.size).toBe(BigInt(bytes.length));
  file.close();
  source.file.close();
});

it('staticFiles sends no copy of an earlier version right after its source was written', async () => {
  const folder = makeFolder({ 'a.js': 'old' });
  const port = await listen(bare(staticFiles(folder, { precompressed: true, cache: false })));
  for (let version = 0; version < 5; version++) {
    put(`${folder}/a.js.br`, brotliCompressSync(`let earlier = ${version};`));
    put(`${folder}/a.js`, `let version = ${version};`);
    const { headers, text } = await get(port, '/a.js', { 'Accept-Encoding': 'br' });
    expect([headers['content-encoding'], text]).toEqual([undefined, `let version = ${version};`]);
  }
});
