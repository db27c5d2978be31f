/** @tags node */
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import express from 'express';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { bare, get, listen, makeFolder, raw } from './fixture.ts';

const root = makeFolder({
  'index.html': '<h1>home</h1>',
  '404.html': '<h1>missing</h1>',
  'app.js': 'let a = 1;',
  'style.css': 'a { color: red }'.repeat(200),
  'large.bin': Buffer.alloc(9 << 20, 'x'),
  'my file.txt': 'spaced',
  '日本.txt': 'japan',
});

/** An Express app with a handler before the files. */
function withBefore(before: express.RequestHandler, options: StaticFilesOptions = {}): Promise<number> {
  const app = express();
  app.use(before, staticFiles(root, options));
  const silent: express.ErrorRequestHandler = (error, _req, res, next) => {
    if (res.headersSent) next(error);
    else res.status(500).send(String(error));
  };
  app.use(silent);
  app.set('env', 'test');
  return listen(app);
}

describe('a status that other code has set', () => {
  it.each([404, 500, 503])(
    'staticFiles sends a file with status %i, without conditions and ranges',
    async (status) => {
      const port = await withBefore((req, res, next) => {
        res.status(status);
        req.url = '/404.html';
        next();
      });
      const etag = (await get(await listen(bare(staticFiles(root))), '/404.html')).headers.etag as string;
      for (const headers of [
        {},
        { 'If-None-Match': etag },
        { Range: 'bytes=0-3' },
        { 'If-Match': '"other"' },
      ]) {
        const response = await get(port, '/none', headers);
        expect([response.status, response.text]).toEqual([status, '<h1>missing</h1>']);
        expect(response.headers['cache-control']).toBe('no-cache');
      }
    },
  );

  it('staticFiles sends the status that setHeaders has set, also for large files', async () => {
    const setHeaders: StaticFilesOptions['setHeaders'] = (res) => {
      res.statusCode = 410;
    };
    const port = await listen(bare(staticFiles(root, { setHeaders })));
    for (const path of ['/app.js', '/large.bin']) {
      const response = await get(port, path, { Range: 'bytes=0-3' });
      expect([response.status, response.body.length > 9]).toEqual([410, true]);
    }
  });

  it('staticFiles ignores the 404 with which Koa begins each response', async () => {
    const files = bare(staticFiles(root, { setHeaders: (res) => void res.setHeader('X-Set', 'yes') }));
    const port = await listen((req, res) => {
      res.statusCode = 404;
      files(req, res);
    });
    expect((await get(port, '/app.js')).status).toBe(200);
  });
});

describe('a response that was started before', () => {
  it.each<[string, express.RequestHandler]>([
    [
      'a write',
      (_req, res, next) => {
        res.write('0');
        next();
      },
    ],
    [
      'flushed headers',
      (_req, res, next) => {
        res.flushHeaders();
        next();
      },
    ],
  ])('staticFiles passes an error to next after %s, and the connection ends', async (_what, before) => {
    const port = await withBefore(before);
    for (let round = 0; round < 2; round++) {
      for (const path of ['/app.js', '/large.bin']) {
        await expect(get(port, path)).rejects.toThrow(/aborted|ECONNRESET|hang up/);
      }
    }
  });

  it('staticFiles calls next without an error if it has no file', async () => {
    let isCalled = false;
    const files = staticFiles(root, { fallback: 'index.html' });
    const port = await listen((req, res) => {
      res.write('0');
      files(req, res, (error) => {
        isCalled = error === undefined;
        res.end('1');
      });
    });
    expect((await get(port, '/none', { Accept: 'text/html' })).text).toBe('01');
    expect(isCalled).toBe(true);
  });

  it('staticFiles leaves a response alone that other code has ended', async () => {
    const port = await withBefore((_req, res, next) => {
      res.end('other');
      next();
    });
    expect((await get(port, '/app.js')).text).toBe('other');
  });
});

it.each<StaticFilesOptions>([{ fallback: 'index.html' }, { notFound: '404.html' }])(
  'staticFiles with %j sends the index file for / to every client',
  async (options) => {
    const port = await listen(bare(staticFiles(root, options)));
    for (const headers of [{}, { Accept: '*/*' }])
      expect((await get(port, '/', headers)).text).toBe('<h1>home</h1>');
    const without = await listen(bare(staticFiles(root, { ...options, html: false })));
    expect((await get(without, '/', { Accept: '*/*' })).status).toBe(404);
  },
);

it('staticFiles lets pages be revalidated although assets have a lifetime', async () => {
  const options = { html: true, fallback: 'index.html', cacheControl: '1d' };
  const port = await listen(bare(staticFiles(root, options)));
  const lifetime = async (path: string): Promise<string | undefined> =>
    (await get(port, path, { Accept: 'text/html' })).headers['cache-control'];
  expect(await lifetime('/')).toBe('public, max-age=0');
  expect(await lifetime('/some/route')).toBe('public, max-age=0');
  expect(await lifetime('/app.js')).toBe('public, max-age=86400');
  const all = await listen(bare(staticFiles(root, { ...options, cacheControl: 'immutable' })));
  expect((await get(all, '/')).headers['cache-control']).toBe('public, max-age=31536000, immutable');
});

it.each([
  ['If-Match', { Range: 'bytes=5-8' }, 206],
  ['If-Range', { Range: 'bytes=5-8' }, 206],
  ['If-None-Match', {}, 304],
] as const)('staticFiles decides %s of a file over 8 MiB right after a start', async (name, more, status) => {
  const before = await listen(bare(staticFiles(root)));
  let etag: string | undefined;
  while (etag === undefined) etag = (await get(before, '/large.bin', {}, 'HEAD')).headers.etag;
  const port = await listen(bare(staticFiles(root)));
  const response = await get(port, '/large.bin', { ...more, [name]: etag });
  expect([response.status, response.headers.etag]).toEqual([status, etag]);
});

describe('a target that middleware has rewritten with decoded text', () => {
  it.each([
    ['/my file.txt', 'spaced'],
    ['/日本.txt', 'japan'],
    ['/\ud800.txt', undefined],
    ['/..\u2215secret', undefined],
    ['/my\nfile.txt', undefined],
  ])('staticFiles with %j sends the file', async (url, text) => {
    const port = await withBefore((req, _res, next) => {
      req.url = url;
      next();
    });
    const response = await get(port, '/download');
    if (text === undefined) expect(response.status).toBe(404);
    else expect([response.status, response.text]).toEqual([200, text]);
  });

  it('staticFiles refuses the same text from a client', async () => {
    const port = await listen(bare(staticFiles(root)));
    expect(await raw(port, 'GET /日本.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(
      / 40[04] /,
    );
  });
});

it('staticFiles without a next function sends 404 for a missing file, and keeps the process', async () => {
  const serve = staticFiles(root, { fallthrough: true });
  const port = await listen(
    createServer(serve as RequestListener).listeners('request')[0] as RequestListener,
  );
  expect((await get(port, '/app.js')).status).toBe(200);
  expect((await get(port, '/none')).status).toBe(404);
  expect((await get(port, '/%zz')).status).toBe(404);
  const strict = await listen(staticFiles(root, { fallthrough: false }) as RequestListener);
  expect((await get(strict, '/%zz')).status).toBe(400);
  expect((await get(strict, '/app.js', {}, 'POST')).status).toBe(405);
});

it('staticFiles sends no metadata of the file with a 304, 412 or 416', async () => {
  const setHeaders: StaticFilesOptions['setHeaders'] = (res) => {
    res.setHeader('Content-Type', 'text/x-other');
    res.setHeader('Content-Encoding', 'identity');
    res.setHeader('Content-Language', 'en');
  };
  const port = await listen(bare(staticFiles(root, { setHeaders })));
  const { headers } = await get(port, '/app.js');
  expect(headers['content-type']).toBe('text/x-other');
  for (const [sent, status] of [
    [{ 'If-None-Match': headers.etag as string }, 304],
    [{ 'If-Match': '"other"' }, 412],
    [{ Range: 'bytes=99-' }, 416],
  ] as const) {
    const response = await get(port, '/app.js', sent);
    expect(response.status).toBe(status);
    expect(response.headers).not.toHaveProperty('content-encoding');
    expect(response.headers).not.toHaveProperty('content-language');
    if (status === 304) expect(response.headers).not.toHaveProperty('content-type');
  }
});

it('staticFiles sends no lifetime and no validator that other code has set with a 404, 405, 412 or 416', async () => {
  const names = ['cache-control', 'cdn-cache-control', 'expires', 'etag', 'content-disposition'];
  const mark = (res: ServerResponse): void => {
    for (const name of names) res.setHeader(name, 'max-age=31536000');
  };
  const files = staticFiles(root, { setHeaders: mark, fallthrough: false, notFound: '404.html' });
  const port = await listen((req, res) => {
    if (req.method === 'POST' || req.url === '/none') mark(res);
    files(req, res, () => res.end());
  });
  expect(Object.keys((await get(port, '/app.js')).headers)).toEqual(expect.arrayContaining(names));
  for (const [sent, status, method, path] of [
    [{}, 405, 'POST', '/app.js'],
    [{ 'If-Match': '"other"' }, 412, 'GET', '/app.js'],
    [{ Range: 'bytes=99-' }, 416, 'GET', '/app.js'],
    [{ Accept: 'text/html' }, 404, 'GET', '/none'],
  ] as const) {
    const response = await get(port, path, sent, method);
    expect(response.status).toBe(status);
    const { 'cache-control': lifetime, ...headers } = response.headers;
    expect(lifetime).toBe(status === 404 ? 'no-cache' : undefined);
    for (const name of names) expect(headers).not.toHaveProperty(name);
  }
});

it('staticFiles lists a folder with the status of other code, and sends no lifetime with a 412', async () => {
  const folder = makeFolder({ 'a.txt': 'a' });
  const files = staticFiles(folder, { listing: true });
  const port = await listen(
    express()
      .use((req, res, next) => {
        res.set('CDN-Cache-Control', 'max-age=60');
        if (req.query['status'] !== undefined) res.status(503);
        next();
      })
      .use(files),
  );
  const { headers } = await get(port, '/');
  const known = { 'If-None-Match': headers.etag as string };
  expect([(await get(port, '/', known)).status, (await get(port, '/?status', known)).status]).toEqual([
    304, 503,
  ]);
  const failed = await get(port, '/', { 'If-Match': '"other"' });
  expect([failed.status, failed.headers['cdn-cache-control']]).toEqual([412, undefined]);
});

it('staticFiles keeps the Vary of other code with a 406', async () => {
  const forOrigin: express.RequestHandler = (_req, res, next) => {
    res.vary('Origin');
    next();
  };
  const port = await withBefore(forOrigin, { compress: true });
  const { status, headers } = await get(port, '/style.css', { 'Accept-Encoding': '*;q=0' });
  expect([status, headers.vary]).toEqual([406, 'Origin, Accept-Encoding']);
});
