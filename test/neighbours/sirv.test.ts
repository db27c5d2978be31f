/** @tags once */
import { brotliCompressSync } from 'node:zlib';
import sirv from 'sirv';
import { staticFiles } from '../../middleware/static.ts';
import { bare, get, listen, makeFolder } from '../static/fixture.ts';

const root = makeFolder({
  'guide/index.html': 'guide',
  'one.html': 'one',
  'app.js.br': brotliCompressSync('app'),
});
const BROTLI = { 'accept-encoding': 'br' };

// The rows of docs/migrating/sirv.md.
it.each([
  ['/guide', [200, undefined], [301, './guide/']],
  ['/one', [200, undefined], [200, undefined]],
  ['/one/', [200, undefined], [404, undefined]],
  ['/app.js', [200, undefined], [404, undefined]],
])('sirv and staticFiles differ for %s as the guide says', async (path, theirs, ours) => {
  const own = await listen(bare(staticFiles(root, { cleanUrls: true, precompressed: true })));
  const other = await listen(bare(sirv(root, { brotli: true })));
  const answerOf = async (port: number) => {
    const { status, headers } = await get(port, path, BROTLI);
    return [status, headers.location];
  };
  expect([await answerOf(other), await answerOf(own)]).toEqual([theirs, ours]);
});

it('staticFiles has a Cache-Control without maxAge, which sirv has not', async () => {
  const own = await listen(bare(staticFiles(root, { cleanUrls: true })));
  const other = await listen(bare(sirv(root)));
  expect((await get(other, '/one')).headers['cache-control']).toBeUndefined();
  expect((await get(own, '/one')).headers['cache-control']).toBe('public, max-age=0');
});
