import { brotliCompressSync, gunzipSync } from 'node:zlib';
import { createBrotliAssets } from '../../src/static/brotli-assets.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

const source = 'console.log("hello");\n'.repeat(500);
const packed = brotliCompressSync(source);
const folder = makeFolder({ 'assets/app-3f2a91.js.br': packed, 'assets/bad.js.br': 'no brotli' });
let port: number;

beforeAll(async () => {
  port = await listen(bare(createBrotliAssets(`${folder}/assets`)));
});

describe('createBrotliAssets', () => {
  it('createBrotliAssets sends the bytes on disk to clients that accept brotli', async () => {
    const response = await get(port, '/app-3f2a91.js', { 'Accept-Encoding': 'gzip, deflate, br' });
    expect(response.headers).toMatchObject({
      'content-encoding': 'br',
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'Accept-Encoding',
    });
    expect(response.body.equals(packed)).toBe(true);
  });

  it.each([
    [undefined, undefined],
    ['identity', undefined],
    ['gzip', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['br;q=0, *;q=0.5', 'gzip'],
  ])('createBrotliAssets sends another coding for Accept-Encoding %s: %s', async (accepted, coding) => {
    const response = await get(
      port,
      '/app-3f2a91.js',
      accepted === undefined ? {} : { 'Accept-Encoding': accepted },
    );
    expect(response.headers['content-encoding']).toBe(coding);
    expect(response.headers['content-length']).toBe(String(response.body.length));
    expect((coding === 'gzip' ? gunzipSync(response.body) : response.body).toString()).toBe(source);
  });

  it('createBrotliAssets sends a different ETag for each coding', async () => {
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

  it('createBrotliAssets sends 406 to a client that refuses every coding', async () => {
    expect((await get(port, '/app-3f2a91.js', { 'Accept-Encoding': '*;q=0' })).status).toBe(406);
  });

  it('createBrotliAssets calls next for unknown files and reports corrupt ones as errors', async () => {
    expect((await get(port, '/none.js')).text).toBe('passed on');
    expect((await get(port, '/app-3f2a91.js.br')).text).toBe('passed on');
    expect((await get(port, '/bad.js')).status).toBe(500);
  });
});
