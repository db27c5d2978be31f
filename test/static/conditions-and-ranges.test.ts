/** @tags node */
import { statSync, utimesSync } from 'node:fs';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { bare, get, listen, makeFolder, raw, type TestResponse } from './fixture.ts';
import { SOURCES } from './source-makers.ts';

const TEN = '0123456789';
const folder = makeFolder({
  'a.txt': TEN,
  'e.txt': '',
  'big.txt': TEN.repeat(60_000),
});
const modified = new Date('2020-02-03T04:05:06.789Z');
for (const name of ['a.txt', 'e.txt', 'big.txt']) utimesSync(`${folder}/${name}`, modified, modified);
const DATE = 'Mon, 03 Feb 2020 04:05:06 GMT';
const LATER = 'Mon, 03 Feb 2020 04:05:07 GMT';
const EARLIER = 'Mon, 03 Feb 2020 04:05:05 GMT';

const HOW = [
  ['from memory', undefined],
  ['streamed', { cache: false }],
] as const;

describe.each(
  SOURCES.flatMap(([source, make]) => HOW.map(([how, options]) => [source, how, make, options] as const)),
)('a file of %s, %s', (_source, _how, make, options) => {
  let port: number;
  let tag: string;
  const request = (
    headers: Record<string, string>,
    path = '/a.txt',
    method = 'GET',
  ): Promise<TestResponse> => {
    const filled = Object.entries(headers).map(([name, value]) => [name, value.replaceAll('<tag>', tag)]);
    return get(port, path, Object.fromEntries(filled), method);
  };

  beforeAll(async () => {
    port = await listen(bare(staticFiles(make(folder), options)));
    // A streamed file has no ETag while another write could leave its timestamps unchanged.
    do tag = (await get(port, '/a.txt')).headers.etag as string;
    while (tag === undefined);
  });

  describe('preconditions (RFC 9110 §13.2.2)', () => {
    it.each([
      ['If-None-Match with the tag', { 'If-None-Match': '<tag>' }, 304],
      ['If-None-Match with the weak form', { 'If-None-Match': 'W/<tag>' }, 304],
      ['If-None-Match in a list', { 'If-None-Match': '"x", W/"y,z" ,<tag>' }, 304],
      ['If-None-Match with a star', { 'If-None-Match': '*' }, 304],
      ['If-None-Match with another tag', { 'If-None-Match': '"x"' }, 200],
      ['If-None-Match, tag without its quotes', { 'If-None-Match': 'abc' }, 200],
      ['If-None-Match, tag inside another', { 'If-None-Match': '"x<tag>' }, 200],
      [
        'If-None-Match, a list of 15 kB with the tag',
        { 'If-None-Match': `${'"x",'.repeat(3800)}<tag>` },
        304,
      ],
      ['If-None-Match, empty', { 'If-None-Match': '' }, 200],
      ['If-None-Match, only W/', { 'If-None-Match': 'W/' }, 200],
      ['If-None-Match, an open quote', { 'If-None-Match': '"' }, 200],
      [
        'If-None-Match with Cache-Control: no-cache',
        { 'If-None-Match': '<tag>', 'Cache-Control': 'no-cache' },
        304,
      ],
      ['If-None-Match before If-Modified-Since', { 'If-None-Match': '"x"', 'If-Modified-Since': LATER }, 200],
      ['If-Modified-Since with the date', { 'If-Modified-Since': DATE }, 304],
      ['If-Modified-Since later', { 'If-Modified-Since': LATER }, 304],
      ['If-Modified-Since earlier', { 'If-Modified-Since': EARLIER }, 200],
      ['If-Modified-Since, RFC 850', { 'If-Modified-Since': 'Monday, 03-Feb-20 04:05:06 GMT' }, 304],
      ['If-Modified-Since, asctime', { 'If-Modified-Since': 'Mon Feb  3 04:05:06 2020' }, 304],
      ['If-Modified-Since, no date', { 'If-Modified-Since': '2020-02-03T04:05:06Z' }, 200],
      ['If-Match with the tag', { 'If-Match': '<tag>' }, 200],
      ['If-Match in a list', { 'If-Match': '"x", <tag>' }, 200],
      ['If-Match with a star', { 'If-Match': '*' }, 200],
      ['If-Match with another tag', { 'If-Match': '"x"' }, 412],
      ['If-Match with the weak form', { 'If-Match': 'W/<tag>' }, 412],
      ['If-Unmodified-Since with the date', { 'If-Unmodified-Since': DATE }, 200],
      ['If-Unmodified-Since earlier', { 'If-Unmodified-Since': EARLIER }, 412],
      ['If-Unmodified-Since, no date', { 'If-Unmodified-Since': 'yesterday' }, 200],
      ['If-Match before If-Unmodified-Since', { 'If-Match': '<tag>', 'If-Unmodified-Since': EARLIER }, 200],
      ['If-Match before If-None-Match', { 'If-Match': '"x"', 'If-None-Match': '<tag>' }, 412],
      ['If-Match and If-None-Match with the tag', { 'If-Match': '<tag>', 'If-None-Match': '<tag>' }, 304],
    ] as [string, Record<string, string>, number][])(
      'staticFiles evaluates %s: %o, status %i',
      async (_name, headers, status) => {
        for (const method of ['GET', 'HEAD']) {
          const response = await request(headers, '/a.txt', method);
          expect(response.status).toBe(status);
          if (status === 200 && method === 'GET') expect(response.text).toBe(TEN);
        }
      },
    );

    it('staticFiles ignores preconditions when there is no file', async () => {
      expect(
        (await request({ 'If-Match': '"x"', 'If-None-Match': '*', Range: 'bytes=0-1' }, '/none')).status,
      ).toBe(404);
    });

    it('staticFiles evaluates preconditions before ranges', async () => {
      expect((await request({ 'If-None-Match': '<tag>', Range: 'bytes=0-1' })).status).toBe(304);
      expect((await request({ 'If-Match': '"x"', Range: 'bytes=0-1' })).status).toBe(412);
    });

    it('staticFiles parses long If-None-Match lists in linear time', async () => {
      for (const list of [
        `${'"x",'.repeat(3900)}`,
        ','.repeat(15_000),
        '"'.repeat(15_001),
        'W/'.repeat(7000),
      ]) {
        expect((await request({ 'If-None-Match': list })).status).toBe(200);
      }
    });
  });

  describe('ranges (RFC 9110 §14)', () => {
    it.each([
      ['bytes=0-3', '0123', '0-3'],
      ['bytes=4-', '456789', '4-9'],
      ['bytes=-3', '789', '7-9'],
      ['bytes=-99', TEN, '0-9'],
      ['bytes=0-99', TEN, '0-9'],
      ['bytes=0-99999999999999999999', TEN, '0-9'],
      ['bytes=9-9', '9', '9-9'],
      ['BYTES=0-0', '0', '0-0'],
      ['bytes= 0-0 , ', '0', '0-0'],
      ['bytes=0-3,2-5', '012345', '0-5'],
      ['bytes=0-3,4-5', '012345', '0-5'],
      ['bytes=5-6,0-1,2-4', '0123456', '0-6'],
      ['bytes=0-1,99-', '01', '0-1'],
      ['bytes=0-,0-,0-', TEN, '0-9'],
    ])('staticFiles sends 206 for Range: %s', async (range, body, content) => {
      const response = await request({ Range: range });
      expect(response.status).toBe(206);
      expect(response.text).toBe(body);
      expect(response.headers['content-range']).toBe(`bytes ${content}/10`);
      expect(response.headers['content-length']).toBe(String(body.length));
      expect(response.headers.etag).toBe(tag);
    });

    it.each(['bytes=10-', 'bytes=99-100', 'bytes=-0', 'bytes=10-,20-'])(
      'staticFiles sends 416 for Range: %s',
      async (range) => {
        const response = await request({ Range: range });
        expect(response.status).toBe(416);
        expect(response.headers['content-range']).toBe('bytes */10');
      },
    );

    it.each([
      'bytes=5-2',
      'bytes=a-b',
      'bytes=1e1-2',
      'bytes=',
      'bytes=-',
      'bytes',
      'bytes=0-1,x',
      'items=0-1',
      'bytes=--1',
      `bytes=${'0-,'.repeat(1200)}`,
      `bytes=${Array.from({ length: 17 }, (_, i) => `${i * 2}-${i * 2}`)}`,
    ])('staticFiles ignores Range: %.30s', async (range) => {
      const response = await request({ Range: range });
      expect(response.status).toBe(200);
      expect(response.text).toBe(TEN);
    });

    it('staticFiles sends several ranges as multipart/byteranges', async () => {
      const response = await request({ Range: 'bytes=0-1,4-5,-1' });
      expect(response.status).toBe(206);
      const boundary = /^multipart\/byteranges; boundary=(\w{20,70})$/.exec(
        response.headers['content-type'] as string,
      )?.[1];
      const part = (range: string, body: string): string =>
        `--${boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes ${range}/10\r\n\r\n${body}\r\n`;
      expect(response.text).toBe(
        `${part('0-1', '01')}${part('4-5', '45')}${part('9-9', '9')}--${boundary}--\r\n`,
      );
      expect(response.headers['content-length']).toBe(String(response.body.length));
      expect(response.headers).not.toHaveProperty('content-range');
    });

    it('staticFiles sends parts with the Content-Type that other code has set for the file', async () => {
      const type = 'application/x-lines';
      const handler = staticFiles(folder, {
        ...options,
        setHeaders: (res) => void res.setHeader('content-type', type),
      });
      const earlier = staticFiles(folder, options);
      const ports = [
        await listen(bare(handler)),
        await listen(
          bare((req, res, next) => {
            res.setHeader('Content-Type', type);
            earlier(req, res, next);
          }),
        ),
      ];
      for (const at of ports) {
        for (const path of ['/a.txt', '/big.txt']) {
          const response = await get(at, path, { Range: 'bytes=0-1,4-5' });
          expect(response.headers['content-type']).toMatch(/^multipart\/byteranges; boundary=/);
          expect(response.text.match(/Content-Type: .*/g)).toEqual(Array(2).fill(`Content-Type: ${type}`));
          const single = await get(at, path, { Range: 'bytes=0-1' });
          expect([single.headers['content-type'], single.text]).toEqual([type, '01']);
        }
      }
    });

    it('staticFiles sends ranges of a large file', async () => {
      const one = await request({ Range: 'bytes=299995-300004' }, '/big.txt');
      expect(one.text).toBe('5678901234');
      const two = await request({ Range: 'bytes=100-109,599990-' }, '/big.txt');
      expect(two.headers['content-length']).toBe(String(two.body.length));
      expect(two.text.match(/\r\n\r\n0123456789\r\n/g)).toHaveLength(2);
    });

    it('staticFiles sends 416 for a range of an empty file', async () => {
      expect((await request({ Range: 'bytes=0-' }, '/e.txt')).headers['content-range']).toBe('bytes */0');
      expect((await request({ Range: 'bytes=-5' }, '/e.txt')).status).toBe(200);
      expect((await request({}, '/e.txt')).headers['content-length']).toBe('0');
    });

    it('staticFiles ignores Range for HEAD', async () => {
      const response = await request({ Range: 'bytes=0-1' }, '/a.txt', 'HEAD');
      expect(response.status).toBe(200);
      expect(response.headers['content-length']).toBe('10');
    });

    it.each([
      ['<tag>', 206],
      [DATE, 206],
      [LATER, 200],
      [EARLIER, 200],
      ['W/<tag>', 200],
      ['"x", <tag>', 200],
      ['"x"', 200],
      ['x<tag>', 200],
      ['"', 200],
      ['x', 200],
    ])('staticFiles evaluates If-Range: %s, status %i', async (validator, status) => {
      const response = await request({ Range: 'bytes=0-1', 'If-Range': validator });
      expect(response.status).toBe(status);
      expect(response.text).toBe(status === 206 ? '01' : TEN);
    });
  });

  it('staticFiles keeps the connection open after every status', async () => {
    const requests = ['Range: bytes=99-', 'If-Match: "x"', 'Range: bytes=0-0', 'If-None-Match: *', 'X: y'];
    const text = requests.map((line) => `GET /a.txt HTTP/1.1\r\nHost: x\r\n${line}\r\n\r\n`).join('');
    const responses = await raw(port, `${text}HEAD /a.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect([...responses.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1])).toEqual([
      '416',
      '412',
      '206',
      '304',
      '200',
      '200',
    ]);
  });
});

describe('header options', () => {
  it.each<[StaticFilesOptions, Record<string, string | undefined>]>([
    [{ etag: false }, { etag: undefined }],
    [{ cacheControl: false }, { 'cache-control': undefined }],
    [{ cacheControl: '90.5s' }, { 'cache-control': 'public, max-age=90' }],
    [{ cacheControl: '1d' }, { 'cache-control': 'public, max-age=86400' }],
    [{ cacheControl: '2 h' }, { 'cache-control': 'public, max-age=7200' }],
    [{ cacheControl: '4000d' }, { 'cache-control': 'public, max-age=31536000' }],
    [{ cacheControl: [] }, { 'cache-control': 'public, max-age=0' }],
    [{ cacheControl: 'immutable' }, { 'cache-control': 'public, max-age=31536000, immutable' }],
    [{ cacheControl: /\/a\./g }, { 'cache-control': 'public, max-age=31536000, immutable' }],
    [{ cacheControl: [/b/, '1s'] }, { 'cache-control': 'public, max-age=1' }],
    [
      { cacheControl: ['vite', (path: string) => path === '/a.txt' && 'immutable', '1h'] },
      { 'cache-control': 'public, max-age=31536000, immutable' },
    ],
  ])('staticFiles with %o sends %o', async (options, expected) => {
    const port = await listen(bare(staticFiles(folder, options)));
    for (let i = 0; i < 2; i++) {
      const { headers } = await get(port, '/a.txt');
      for (const [name, value] of Object.entries(expected)) expect(headers[name]).toBe(value);
    }
  });

  it('staticFiles evaluates preconditions without ETag and Last-Modified', async () => {
    const root = makeFolder({ 'a.txt': 'a text' });
    // A placeholder of a build tool, which is no date of the file.
    utimesSync(`${root}/a.txt`, 1, 1);
    const port = await listen(bare(staticFiles(root, { etag: false })));
    for (const [headers, status] of [
      [{ 'If-None-Match': '"x"' }, 200],
      [{ 'If-Modified-Since': LATER }, 200],
      [{ 'If-Match': '"x"' }, 412],
      [{ 'If-Unmodified-Since': EARLIER }, 200],
      [{ Range: 'bytes=0-1', 'If-Range': DATE }, 200],
    ] as const) {
      expect((await get(port, '/a.txt', headers)).status).toBe(status);
    }
  });

  it("staticFiles with etag: 'stat' sends the same ETag from two middleware instances", async () => {
    const tags = new Set<unknown>();
    for (let i = 0; i < 2; i++) {
      const port = await listen(bare(staticFiles(folder, { etag: 'stat' })));
      tags.add((await get(port, '/a.txt')).headers.etag?.replace('W/', ''));
    }
    expect(tags.size).toBe(1);
  });

  it("staticFiles with etag: 'stat' sends an ETag that contains neither the inode nor the timestamps", async () => {
    const port = await listen(bare(staticFiles(folder, { etag: 'stat' })));
    const tag = (await get(port, '/a.txt')).headers.etag as string;
    const { ino, mtimeNs, ctimeNs } = statSync(`${folder}/a.txt`, { bigint: true });
    for (const value of [ino, mtimeNs, ctimeNs]) {
      for (const radix of [10, 16, 36]) {
        expect(tag.replace('W/', '').split(/["-]/)).not.toContain(value.toString(radix));
      }
    }
  });
});
