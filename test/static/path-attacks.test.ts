/** @tags node */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer as createUnixServer, type Server } from 'node:net';
import { staticFiles } from '../../middleware/static.ts';
import type { Middleware } from '../../types/connect.ts';
import { eachExpress } from '../express.ts';
import { get, listen, makeFolder, raw, rawGet } from './fixture.ts';

const SECRET = 'outside the root';
const folder = makeFolder({
  'secret.txt': SECRET,
  'www-secret/x.txt': SECRET,
  'www/a.txt': '0123456789',
  'www/a\\b.txt': 'a backslash in its name',
  'www/dir/index.html': '<p>index</p>',
  'www/<script>/index.html': '<p>script</p>',
  'www/dir/.x/y': 'below a dotfile',
  'www/.env': 'KEY=secret',
  'www/.git/config': 'url = secret',
  'www/.well-known/x.txt': 'well known',
  'www/.well-known/.hidden': 'hidden',
  'www/.well-known-not/x.txt': 'another dotfile',
  'www/dir.txt/inner.txt': 'inner',
  'www/unknown.zzz': '<script>alert(1)</script>',
  'www/e.txt': '',
  'www/private/x': 'private',
  'www/secret-mode.txt': 'unreadable',
  'www/ü.txt': 'u umlaut, composed',
});
const root = `${folder}/www`;
symlinkSync('../secret.txt', `${root}/link.txt`);
symlinkSync('../www-secret', `${root}/up`);
symlinkSync('a.txt', `${root}/inside.txt`);
symlinkSync('loop', `${root}/loop`);
symlinkSync('/dev/zero', `${root}/zero`);
execFileSync('mkfifo', [`${root}/fifo`]);
chmodSync(`${root}/secret-mode.txt`, 0);
mkdirSync(`${root}/dir.d`);

const long = (length: number): string => 'a'.repeat(length);

/** Request targets for which no file may be sent, with html on and off. */
const REFUSED: [string, string][] = [
  ['plain traversal', '/../secret.txt'],
  ['plain traversal, deeper', '/dir/../../secret.txt'],
  ['encoded dots', '/%2e%2e/secret.txt'],
  ['half encoded dots', '/.%2E/secret.txt'],
  ['encoded slash', '/..%2fsecret.txt'],
  ['encoded slashes inside a segment', '/dir%2f..%2f..%2fsecret.txt'],
  ['encoded slash inside the root', '/dir%2findex.html'],
  ['double encoding', '/%252e%252e/secret.txt'],
  ['backslash', '/..\\secret.txt'],
  ['encoded backslash', '/..%5csecret.txt'],
  ['a name with a backslash', '/a%5cb.txt'],
  ['dot segments past a guard', '/public/../private/x'],
  ['a single dot', '/./a.txt'],
  ['a dot at the end', '/a.txt/.'],
  ['repeated slashes', '//a.txt'],
  ['repeated slashes inside', '/dir//index.html'],
  ['repeated slashes at the end', '/a.txt//'],
  ['a sibling with the same prefix', '/../www-secret/x.txt'],
  ['NUL', '/a.txt%00'],
  ['NUL before an extension', '/secret%00.html'],
  ['overlong UTF-8', '/%c0%ae%c0%ae/secret.txt'],
  ['overlong slash', '/%e0%80%af'],
  ['a lone percent', '/%'],
  ['no hexadecimal', '/%zz'],
  ['no UTF-8', '/%ff'],
  ['line breaks', '/dir%0d%0aX:y'],
  ['escape sequences', '/%1b[2J'],
  ['a host in the path', '//evil.com/..'],
  ['a host and an encoded slash', '//evil.com/..%2f'],
  ['a backslash and a host', '/\\evil.com/%2e%2e'],
  ['an asterisk', '*'],
  ['a fragment', '/a.txt#x'],
  ['a query that climbs', '/secret?/../..'],
  ['markup', '/<img%20src=x%20onerror=alert(1)>'],
  ['dotfile', '/.env'],
  ['below a dot directory', '/.git/config'],
  ['below a dot directory, deeper', '/dir/.x/y'],
  ['encoded dotfile', '/%2eenv'],
  ['a dotfile below .well-known', '/.well-known/.hidden'],
  ['another name that begins with .well-known', '/.well-known-not/x.txt'],
  ['a link out of the root', '/link.txt'],
  ['below a link out of the root', '/up/x.txt'],
  ['a link to itself', '/loop'],
  ['a unix socket', '/sock'],
  ['a device', '/zero'],
  ['below a file', '/a.txt/x'],
  ['a long segment', `/${long(300)}`],
  ['a long path', `/${'a/'.repeat(3000)}`],
  ['a path of 12 kB', `/${long(12_000)}`],
  ['__proto__', '/__proto__'],
  ['constructor', '/constructor'],
  ['another case', '/.ENV'],
  ['another case of a file', '/A.TXT'],
  ['con', '/con'],
  ['nul.txt', '/nul.txt'],
  ['a trailing dot', '/a.txt.'],
  ['a trailing space', '/a.txt%20'],
  ['a stream', '/a.txt::$DATA'],
  ['a short name', '/PROGRA~1'],
  ['a drive', '/c:/x'],
  ['the other Unicode form', '/u%CC%88.txt'],
];

let socketFile: Server;
beforeAll(async () => {
  socketFile = createUnixServer();
  await new Promise<void>((done) => socketFile.listen(`${root}/sock`, done));
});
afterAll(() => new Promise((done) => socketFile.close(done)));

eachExpress((express) => {
  describe.each([
    ['html off', false],
    ['html on', true],
  ])('with %s', (_mode, html) => {
    let port: number;
    beforeAll(async () => {
      const app = express();
      app.use(staticFiles(root, html));
      app.use((_req, res) => {
        res.status(404).end('passed on');
      });
      port = await listen(app);
    });

    it.each(REFUSED)('staticFiles calls next for %s', async (_name, target) => {
      const response = await rawGet(port, target);
      expect(response).toMatch(/^HTTP\/1\.1 404 /);
      expect(response).toMatch(/\r\n\r\npassed on$/);
    });

    it('staticFiles keeps an encoded line break in the query of a redirect encoded', async () => {
      const response = await rawGet(port, '/dir?x=%0d%0aSet-Cookie:a=b');
      expect(response).not.toMatch(/^set-cookie/im);
      expect(response).toMatch(
        html ? /^location: \.\/dir\/\?x=%0d%0aSet-Cookie:a=b\r$/im : /^HTTP\/1\.1 404 /,
      );
    });

    it('staticFiles accepts an absolute request target and never sends its host back', async () => {
      expect(await rawGet(port, 'http://evil.com/a.txt')).toMatch(/\r\n\r\n0123456789$/);
      expect(await rawGet(port, 'http://evil.com/dir')).not.toContain('evil.com');
    });

    it('staticFiles sends no file for a target without a slash', async () => {
      expect(await rawGet(port, 'a.txt')).toMatch(/^HTTP\/1\.1 40[04] /);
    });

    it('staticFiles ignores the query', async () => {
      for (const target of ['/a.txt?raw??', '/a.txt?x=../..']) {
        expect(await rawGet(port, target)).toMatch(/\r\n\r\n0123456789$/);
      }
    });

    it('staticFiles does not echo a directory name that contains markup', async () => {
      const response = await rawGet(port, '/%3Cscript%3E');
      expect(response).not.toContain('<script>');
    });

    it('staticFiles serves .well-known', async () => {
      expect(await rawGet(port, '/.well-known/x.txt')).toMatch(/\r\n\r\nwell known$/);
    });

    it('staticFiles serves a symbolic link that stays inside the root', async () => {
      expect(await rawGet(port, '/inside.txt')).toMatch(/\r\n\r\n0123456789$/);
    });

    it('staticFiles sends 404 for a FIFO without blocking a thread', async () => {
      for (let i = 0; i < 8; i++) expect(await rawGet(port, '/fifo')).toMatch(/^HTTP\/1\.1 404 /);
      expect(await rawGet(port, '/a.txt')).toMatch(/\r\n\r\n0123456789$/);
    });

    it('staticFiles sends 404 for an unreadable file and does not reveal its path', async () => {
      const response = await rawGet(port, '/secret-mode.txt');
      // Root may read everything.
      expect(response).toMatch(process.getuid?.() === 0 ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 404 /);
      expect(response).not.toContain(folder);
    });

    it('staticFiles sends the same ETag for every percent-encoding of a name', async () => {
      const tags = new Set<string | undefined>();
      for (const target of ['/a.txt', '/%61.txt', '/a%2etxt', '/a%2Etxt?x']) {
        const { headers, text } = await get(port, target);
        expect(text).toBe('0123456789');
        tags.add(headers.etag);
      }
      expect(tags.size).toBe(1);
    });

    it('staticFiles serves a non-ASCII name in the Unicode form that it has on disk', async () => {
      expect((await get(port, '/%C3%BC.txt')).text).toBe('u umlaut, composed');
    });

    it('staticFiles sends an unknown extension as application/octet-stream with nosniff', async () => {
      const { headers } = await get(port, '/unknown.zzz');
      expect(headers['content-type']).toBe('application/octet-stream');
      expect(headers['x-content-type-options']).toBe('nosniff');
    });

    it('staticFiles treats a directory with an extension as a directory', async () => {
      expect((await get(port, '/dir.txt')).status).toBe(html ? 301 : 404);
      expect((await get(port, '/dir.txt/')).status).toBe(404);
    });

    it('staticFiles ignores a slash after a file name only when html is false', async () => {
      expect((await get(port, '/a.txt/')).status).toBe(html ? 404 : 200);
    });

    it('staticFiles calls next for methods other than GET and HEAD', async () => {
      for (const method of ['POST', 'DELETE', 'PUT', 'TRACE', 'OPTIONS', 'PATCH']) {
        const response = await raw(
          port,
          `${method} /a.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
        );
        expect(response).toMatch(/\r\n\r\npassed on$/);
      }
    });
  });

  describe('mounts', () => {
    it('staticFiles serves only paths below its mount path', async () => {
      const app = express();
      app.use('/static', staticFiles(root));
      const port = await listen(app);
      expect((await get(port, '/static/a.txt')).status).toBe(200);
      for (const path of ['/staticfoo', '/statica.txt', '/static', '/a.txt', '/static/static/a.txt']) {
        expect((await get(port, path)).status).toBe(404);
      }
    });
  });
});

/** Responds with the status of the error that staticFiles passes to next. */
function withErrorStatus(app: Middleware): RequestListener {
  return (req, res) =>
    app(req, res, (error) => {
      res.statusCode = error === undefined ? 299 : Object(error).status;
      res.end();
    });
}

describe('dotfiles', () => {
  it.each([
    ['ignore', 404],
    ['deny', 403],
    ['allow', 200],
  ] as const)(
    'staticFiles treats dotfiles according to dotfiles: %s, status %i',
    async (dotfiles, status) => {
      const app = staticFiles(root, { dotfiles, fallthrough: false });
      const port = await listen(withErrorStatus(app));
      for (const target of ['/.env', '/%2eenv', '/.git/config']) {
        expect(await rawGet(port, target)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      }
      expect(await rawGet(port, '/.well-known/x.txt')).toMatch(/^HTTP\/1\.1 200 /);
    },
  );
});

describe('fallthrough: false', () => {
  it('staticFiles passes a 404 for missing files and sends 405 for other methods, without parts of the request', async () => {
    const app = staticFiles(root, { fallthrough: false });
    const port = await listen(withErrorStatus(app));
    const notFound = await rawGet(port, '/<img src=x>'.replaceAll(' ', '%20'));
    expect(notFound).toMatch(/^HTTP\/1\.1 404 /);
    expect(notFound).not.toContain('<img');
    const post = await get(port, '/a.txt', {}, 'POST');
    expect(post.status).toBe(405);
    expect(post.headers.allow).toBe('GET, HEAD');
  });
});

describe('symlinks: follow', () => {
  it('staticFiles serves files outside the root but no FIFO when symlinks is follow', async () => {
    const app = staticFiles(root, { symlinks: 'follow', fallthrough: false });
    const port = await listen(withErrorStatus(app));
    expect((await get(port, '/link.txt')).text).toBe(SECRET);
    expect((await get(port, '/up/x.txt')).text).toBe(SECRET);
    expect((await get(port, '/fifo')).status).toBe(404);
    expect((await get(port, '/zero')).status).toBe(404);
  });
});

it.each([
  ['CONNECT', 'CONNECT evil.com:443 HTTP/1.1'],
  ['an authority', 'GET evil.com:80 HTTP/1.1'],
  ['an empty target', 'GET  HTTP/1.1'],
  ['a star', 'GET * HTTP/1.1'],
])('staticFiles sends no file for a request target that is not a path: %s', async (_name, line) => {
  const app = staticFiles(root);
  const port = await listen((req, res) => app(req, res, () => void res.writeHead(404).end()));
  const response = await raw(port, `${line}\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(response).toMatch(/^(HTTP\/1\.1 40[04] |$)/);
});
