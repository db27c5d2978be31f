/** @tags node-lines */
import { pathToFileURL } from 'node:url';
import { staticFiles } from '../../middleware/static.ts';
import { eachExpress } from '../express.ts';
import { get, listen, makeFolder } from './fixture.ts';

const folder = makeFolder({
  'www/a.txt': '0123456789',
  'www/app.css': 'body{}',
  'www/empty.txt': '',
  'www/large.bin': Buffer.alloc(600_000, 'x'),
  'www/page/index.html': '<h1>page</h1>',
  'www/index.html': '<h1>home</h1>',
  'www/no-extension': '<script>alert(1)</script>',
  'second/b.txt': 'second',
});
const root = `${folder}/www`;

eachExpress((express) => {
  let port: number;
  let pages: number;

  beforeAll(async () => {
    const app = express();
    app.use('/static', staticFiles(root));
    app.use('/static', staticFiles(`${folder}/second`));
    port = await listen(app);
    const site = express();
    site.use('/site', staticFiles(root, true));
    site.use(staticFiles(root, true));
    pages = await listen(site);
  });

  it('staticFiles sends a file with its media type and a strong ETag', async () => {
    const response = await get(port, '/static/app.css');
    expect(response.status).toBe(200);
    expect(response.text).toBe('body{}');
    expect(response.headers).toMatchObject({
      'content-type': 'text/css; charset=utf-8',
      'content-length': '6',
      'cache-control': 'public, max-age=0',
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'x-powered-by': 'Express',
    });
    expect(response.headers.etag).toMatch(/^"6-[\w+/]{27}"$/);
    expect(new Date(response.headers['last-modified'] as string).getTime()).toBeGreaterThan(0);
  });

  it.each(['/static/a.txt', '/static/large.bin', '/static/empty.txt'])(
    'staticFiles sends 304 for %s when If-None-Match lists the ETag',
    async (path) => {
      const first = await get(port, path);
      const again = await get(port, path, { 'If-None-Match': first.headers.etag as string });
      expect(again.status).toBe(304);
      expect(again.body).toHaveLength(0);
      for (const name of ['etag', 'cache-control', 'last-modified']) {
        expect(again.headers[name]).toBe(first.headers[name]);
      }
      expect(again.headers).not.toHaveProperty('content-type');
      expect(again.headers).not.toHaveProperty('content-length');
    },
  );

  it('staticFiles streams a file that is too large for the cache', async () => {
    const response = await get(port, '/static/large.bin');
    expect(response.headers['content-length']).toBe('600000');
    expect(response.body.equals(Buffer.alloc(600_000, 'x'))).toBe(true);
  });

  it('staticFiles responds to HEAD with the headers of GET and no body', async () => {
    for (const path of ['/static/a.txt', '/static/large.bin']) {
      const whole = await get(port, path);
      const head = await get(port, path, {}, 'HEAD');
      expect({ ...head.headers, date: '' }).toEqual({ ...whole.headers, date: '' });
      expect(head.body).toHaveLength(0);
    }
  });

  it('staticFiles calls next for missing files and for other methods', async () => {
    expect((await get(port, '/static/b.txt')).text).toBe('second');
    expect((await get(port, '/static/none.txt')).status).toBe(404);
    expect((await get(port, '/static/a.txt', {}, 'POST')).status).toBe(404);
  });

  it('staticFiles sends 404 for a directory and ignores a slash after a file name when html is false', async () => {
    for (const path of ['/static', '/static/', '/static/page', '/static/page/']) {
      expect((await get(port, path)).status).toBe(404);
    }
    expect((await get(port, '/static/a.txt/')).text).toBe('0123456789');
  });

  it('staticFiles sends the index file of a directory when html is true', async () => {
    expect((await get(pages, '/')).text).toBe('<h1>home</h1>');
    expect((await get(pages, '/site/')).text).toBe('<h1>home</h1>');
    expect((await get(pages, '/page/')).text).toBe('<h1>page</h1>');
    expect((await get(pages, '/a.txt/')).status).toBe(404);
  });

  it.each([
    ['/page', './page/'],
    ['/page?a=1&b=%0d%0aX', './page/?a=1&b=%0d%0aX'],
    ['/site/page', './page/'],
    ['/site', './site/'],
    ['/site?x=1', './site/?x=1'],
  ])('staticFiles redirects %s to %s', async (path, location) => {
    const response = await get(pages, path);
    expect(response.status).toBe(301);
    expect(response.headers.location).toBe(location);
  });
});

describe('the dir argument', () => {
  it('staticFiles accepts a file: URL', async () => {
    const app = staticFiles(pathToFileURL(root));
    const port = await listen((req, res) => app(req, res, () => {}));
    expect((await get(port, '/a.txt')).text).toBe('0123456789');
  });
});
