import { brotliCompressSync, gunzipSync } from 'node:zlib';
import { createAssets } from '../../src/static/brotli-assets.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

const source = 'console.log("hello");\n'.repeat(500);
const packed = brotliCompressSync(source);
const folder = makeFolder({ 'assets/app-3f2a91.js.br': packed, 'assets/bad.js.br': 'no brotli' });
let port: number;

beforeAll(async () => {
  port = await listen(bare(createAssets(`${folder}/assets`)));
});

describe('assets that exist only in brotli', () => {
  it('are answered as they lie there to clients that accept it', async () => {
    const answer = await get(port, '/app-3f2a91.js', { 'Accept-Encoding': 'gzip, deflate, br' });
    expect(answer.headers).toMatchObject({
      'content-encoding': 'br',
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'Accept-Encoding',
    });
    expect(answer.body.equals(packed)).toBe(true);
  });

  it.each([
    [undefined, undefined],
    ['identity', undefined],
    ['gzip', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['br;q=0, *;q=0.5', 'gzip'],
  ])('are decoded for Accept-Encoding %s', async (accepted, coding) => {
    const answer = await get(
      port,
      '/app-3f2a91.js',
      accepted === undefined ? {} : { 'Accept-Encoding': accepted },
    );
    expect(answer.headers['content-encoding']).toBe(coding);
    expect(answer.headers['content-length']).toBe(String(answer.body.length));
    expect((coding === 'gzip' ? gunzipSync(answer.body) : answer.body).toString()).toBe(source);
  });

  it('have a tag of their own in each coding', async () => {
    const tags = new Set<unknown>();
    for (const accepted of ['br', 'gzip', 'identity']) {
      const { headers } = await get(port, '/app-3f2a91.js', { 'Accept-Encoding': accepted });
      tags.add(headers.etag);
      const again = await get(port, '/app-3f2a91.js', {
        'Accept-Encoding': accepted,
        'If-None-Match': headers.etag as string,
      });
      expect(again.status).toBe(304);
      expect(again.headers.vary).toBe('Accept-Encoding');
    }
    expect(tags.size).toBe(3);
  });

  it('are refused to a client that refuses every coding', async () => {
    expect((await get(port, '/app-3f2a91.js', { 'Accept-Encoding': '*;q=0' })).status).toBe(406);
  });

  it('are misses when there are none, and errors when they are broken', async () => {
    expect((await get(port, '/none.js')).text).toBe('passed on');
    expect((await get(port, '/app-3f2a91.js.br')).text).toBe('passed on');
    expect((await get(port, '/bad.js')).status).toBe(500);
  });
});
