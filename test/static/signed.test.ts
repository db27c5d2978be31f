/** @tags once */
import { randomBytes } from 'node:crypto';
import * as http from 'node:http';
import express from 'express';
import { memoryFiles } from '../../middleware/sources.ts';
import { type StaticFilesOptions, signUrl, staticFiles } from '../../middleware/static.ts';
import { listen, makeFolder } from '../kit.ts';

const keys = randomBytes(32);
const NOT_SIGNED = [403, 'The link is not signed\n'];
const EXPIRED = [403, 'The link has expired\n'];

async function serve(options: StaticFilesOptions = {}): Promise<string> {
  const folder = makeFolder({ 'a.txt': 'a', 'b.txt': 'b', 'ü 100% [1].txt': 'u' });
  const app = express();
  app.use('/private', staticFiles(folder, { signed: { keys }, ...options }));
  app.use('/other', staticFiles(folder, { signed: { keys }, ...options }));
  return (await listen(app)).url;
}

const get = async (url: string, init?: RequestInit): Promise<[number, string]> => {
  const response = await fetch(url, init);
  return [response.status, await response.text()];
};

/** Sends a path as it is: fetch would normalise it. */
const getRaw = (url: string, path: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    http.get(url, { path }, (res) => resolve(res.resume().statusCode)).on('error', reject);
  });

const link = (path: string, more: object = {}): string => signUrl(path, { keys, expiresIn: '1m', ...more });

describe('the option signed', () => {
  it('signed serves a file for its link, and 403 without one, whether or not there is a file', async () => {
    const url = await serve();
    expect(await get(url + link('/private/a.txt'))).toEqual([200, 'a']);
    expect(await get(url + link('/private/ü 100% [1].txt'))).toEqual([200, 'u']);
    for (const path of ['/private/a.txt', '/private/missing', '/private/']) {
      const response = await fetch(url + path);
      expect([response.status, await response.text()]).toEqual(NOT_SIGNED);
      expect(response.headers.get('cache-control')).toBe('no-store');
    }
    expect((await fetch(url + link('/private/missing'))).status).toBe(404);
  });

  it('no rule lets a shared cache keep a file with a link', async () => {
    const rules = { headers: '/*\n  cdn-cache-control: max-age=300\n  Surrogate-Control: max-age=9' };
    const { headers } = await fetch((await serve({ rules })) + link('/private/a.txt'));
    expect(headers.get('cache-control')).toMatch(/^private, max-age=0/);
    expect([headers.get('cdn-cache-control'), headers.get('surrogate-control')]).toEqual([
      'no-store',
      'no-store',
    ]);
  });

  it('a link is for one path below one mount, and a changed one is not signed', async () => {
    const url = await serve();
    const [, query] = link('/private/a.txt').split('?') as [string, string];
    for (const path of ['/private/b.txt', '/other/a.txt', '/PRIVATE/a.txt'])
      expect(await get(`${url}${path}?${query}`)).toEqual(NOT_SIGNED);
    const changed = [
      query.replace(/expires=\d/, 'expires=9'),
      query.replace('signature=', 'signature=A'),
      query.slice(0, -1),
      query.replace(/signature=.*/, ''),
      query.replace(/expires=\d+/, 'expires='),
      `signature=x&${query}`,
      '',
    ];
    for (const each of changed) expect(await get(`${url}/private/a.txt?${each}`)).toEqual(NOT_SIGNED);
  });

  it('every accepted percent-encoding of a path is the same path, and no other spelling leads to a file', async () => {
    const url = await serve();
    const [, query] = link('/private/a.txt').split('?');
    expect(await getRaw(url, `/private/%61.txt?${query}`)).toBe(200);
    expect(await getRaw(url, `/private/%61%2Etxt?${query}`)).toBe(200);
    for (const path of [
      '/private/%2561.txt',
      '/private/./a.txt',
      '/private//a.txt',
      '/private%2Fa.txt',
      '/private/x/../a.txt',
    ])
      expect([path, await getRaw(url, `${path}?${query}`)]).not.toEqual([path, 200]);
  });

  it('an expired link says so, and only with a valid signature', async () => {
    const url = await serve();
    const target = link('/private/a.txt', { expiresIn: '1s' });
    const now = Date.now();
    jest.spyOn(Date, 'now').mockReturnValue(now + 2000);
    expect(await get(url + target)).toEqual(EXPIRED);
    expect(await get(url + target.replace('signature=', 'signature=A'))).toEqual(NOT_SIGNED);
    jest.restoreAllMocks();
  });

  it('links of one time are equal, and live at least expiresIn and at most a tenth longer', () => {
    const now = 1_700_000_000_000;
    const lives = [0, 1, 999, 6000, 59_999].map((passed) => {
      jest.spyOn(Date, 'now').mockReturnValue(now + passed);
      const target = link('/private/a.txt', { expiresIn: '10m' });
      return { target, life: Number(/expires=(\d+)/.exec(target)?.[1]) * 1000 - Date.now() };
    });
    jest.restoreAllMocks();
    for (const { life } of lives) {
      expect(life).toBeGreaterThanOrEqual(600_000);
      expect(life).toBeLessThanOrEqual(660_000);
    }
    expect(new Set(lives.map(({ target }) => target)).size).toBe(2);
  });

  it('a link allows GET and HEAD', async () => {
    const url = await serve();
    expect((await fetch(url + link('/private/a.txt'), { method: 'HEAD' })).status).toBe(200);
  });

  it('a link for an address is for the client that Express sees', async () => {
    const url = await serve();
    expect((await get(url + link('/private/a.txt', { ip: '127.0.0.1' })))[0]).toBe(200);
    expect(await get(url + link('/private/a.txt', { ip: '10.0.0.1' }))).toEqual(NOT_SIGNED);
    const app = express().set('trust proxy', true);
    app.use(staticFiles(makeFolder({ 'a.txt': 'a' }), { signed: { keys } }));
    const { url: proxied } = await listen(app);
    const target = proxied + link('/a.txt', { ip: '10.0.0.1' });
    expect((await get(target, { headers: { 'x-forwarded-for': '10.0.0.1' } }))[0]).toBe(200);
    expect((await get(target, { headers: { 'x-forwarded-for': '10.0.0.2' } }))[0]).toBe(403);
  });

  it('links of an earlier key stay valid, and new ones have the new key', async () => {
    const next = randomBytes(32).toString('hex');
    const url = await serve({ signed: { keys: [next, keys] } });
    expect((await get(url + link('/private/a.txt')))[0]).toBe(200);
    expect((await get(url + link('/private/a.txt', { keys: [next, keys] })))[0]).toBe(200);
    const later = await serve({ signed: { keys: next } });
    expect(await get(later + link('/private/a.txt'))).toEqual(NOT_SIGNED);
    expect((await get(later + link('/private/a.txt', { keys: [next, keys] })))[0]).toBe(200);
  });

  it.each<[StaticFilesOptions, RegExp]>([
    [{ cacheControl: 'immutable' }, /^private, max-age=(?:59|6[0-6]), must-revalidate$/],
    [{ cacheControl: '5s' }, /^private, max-age=5, must-revalidate$/],
    [{}, /^private, max-age=0, must-revalidate$/],
    [{ cacheControl: false }, /^private, max-age=0, must-revalidate$/],
    [{ cacheControl: 'public, s-maxage=999' }, /^private, max-age=0, must-revalidate$/],
    [{ cacheControl: 'private, no-cache' }, /^private, no-cache$/],
    [
      { setHeaders: (res) => void res.setHeader('Cache-Control', 'public, max-age=999') },
      /^private, max-age=(?:59|6[0-6]), must-revalidate$/,
    ],
  ])('no cache keeps a file longer than its link is valid: %j', async (options, expected) => {
    const url = await serve(options);
    const response = await fetch(url + link('/private/a.txt'));
    expect(response.headers.get('cache-control')).toMatch(expected);
    const etag = response.headers.get('etag') as string;
    const same = await fetch(url + link('/private/a.txt'), { headers: { 'if-none-match': etag } });
    expect([same.status, same.headers.get('cache-control')]).toEqual([304, expect.stringMatching(expected)]);
  });

  it('signed works for the files of a source, and with untrusted', async () => {
    const files = staticFiles(memoryFiles({ 'a.html': 'x' }), { signed: { keys }, untrusted: true });
    const { url } = await listen((req, res) => files(req, res, () => res.end()));
    expect(await get(`${url}/a.html`)).toEqual(NOT_SIGNED);
    const response = await fetch(url + link('/a.html'));
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'application/octet-stream',
    ]);
  });
});
