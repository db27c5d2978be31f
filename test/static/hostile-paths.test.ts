import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { createServer as createUnixServer, type Server } from 'node:net';
import { staticFiles } from '../../middleware/static.ts';
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
  'www/secret-mode.txt': 'no one may read this',
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

/** Targets that must never be answered with a file, in every mode, whatever they name. */
const REFUSED: [string, string][] = [
  ['1 plain traversal', '/../secret.txt'],
  ['1 plain traversal, deeper', '/dir/../../secret.txt'],
  ['2 encoded dots', '/%2e%2e/secret.txt'],
  ['2 half encoded dots', '/.%2E/secret.txt'],
  ['3 encoded slash', '/..%2fsecret.txt'],
  ['3 encoded slashes inside a segment', '/dir%2f..%2f..%2fsecret.txt'],
  ['4 encoded slash inside the root', '/dir%2findex.html'],
  ['5 double encoding', '/%252e%252e/secret.txt'],
  ['6 backslash', '/..\\secret.txt'],
  ['6 encoded backslash', '/..%5csecret.txt'],
  ['7 a name with a backslash', '/a%5cb.txt'],
  ['8 dot segments past a guard', '/public/../private/x'],
  ['8 a single dot', '/./a.txt'],
  ['8 a dot at the end', '/a.txt/.'],
  ['9 repeated slashes', '//a.txt'],
  ['9 repeated slashes inside', '/dir//index.html'],
  ['9 repeated slashes at the end', '/a.txt//'],
  ['10 a sibling with the same prefix', '/../www-secret/x.txt'],
  ['11 NUL', '/a.txt%00'],
  ['11 NUL before an extension', '/secret%00.html'],
  ['12 overlong UTF-8', '/%c0%ae%c0%ae/secret.txt'],
  ['12 overlong slash', '/%e0%80%af'],
  ['13 a lone percent', '/%'],
  ['13 no hexadecimal', '/%zz'],
  ['13 no UTF-8', '/%ff'],
  ['14 line breaks', '/dir%0d%0aX:y'],
  ['14 escape sequences', '/%1b[2J'],
  ['16 a host in the path', '//evil.com/..'],
  ['16 a host and an encoded slash', '//evil.com/..%2f'],
  ['17 a backslash and a host', '/\\evil.com/%2e%2e'],
  ['19 an asterisk', '*'],
  ['20 a fragment', '/a.txt#x'],
  ['20 a query that climbs', '/secret?/../..'],
  ['23 markup', '/<img%20src=x%20onerror=alert(1)>'],
  ['24 dotfile', '/.env'],
  ['24 below a dot directory', '/.git/config'],
  ['24 below a dot directory, deeper', '/dir/.x/y'],
  ['25 encoded dotfile', '/%2eenv'],
  ['26 a dotfile below .well-known', '/.well-known/.hidden'],
  ['26 another name that begins with .well-known', '/.well-known-not/x.txt'],
  ['27 a link out of the root', '/link.txt'],
  ['28 below a link out of the root', '/up/x.txt'],
  ['31 a link to itself', '/loop'],
  ['33 a unix socket', '/sock'],
  ['33 a device', '/zero'],
  ['36 below a file', '/a.txt/x'],
  ['38 a long segment', `/${long(300)}`],
  ['38 a long path', `/${'a/'.repeat(3000)}`],
  ['38 a path of 12 kB', `/${long(12_000)}`],
  ['41 __proto__', '/__proto__'],
  ['41 constructor', '/constructor'],
  ['42 another case', '/.ENV'],
  ['42 another case of a file', '/A.TXT'],
  ['43 con', '/con'],
  ['43 nul.txt', '/nul.txt'],
  ['43 a trailing dot', '/a.txt.'],
  ['43 a trailing space', '/a.txt%20'],
  ['43 a stream', '/a.txt::$DATA'],
  ['43 a short name', '/PROGRA~1'],
  ['43 a drive', '/c:/x'],
  ['44 the other Unicode form', '/u%CC%88.txt'],
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

    it.each(REFUSED)('%s: a miss', async (_name, target) => {
      const answer = await rawGet(port, target);
      expect(answer).toMatch(/^HTTP\/1\.1 404 /);
      expect(answer).toMatch(/\r\n\r\npassed on$/);
    });

    it('15 a line break in the query of a redirect stays encoded', async () => {
      const answer = await rawGet(port, '/dir?x=%0d%0aSet-Cookie:a=b');
      expect(answer).not.toMatch(/^set-cookie/im);
      expect(answer).toMatch(html ? /^location: \.\/dir\/\?x=%0d%0aSet-Cookie:a=b\r$/im : /^HTTP\/1\.1 404 /);
    });

    it('18 an absolute target is a path, and its host is never copied', async () => {
      expect(await rawGet(port, 'http://evil.com/a.txt')).toMatch(/\r\n\r\n0123456789$/);
      expect(await rawGet(port, 'http://evil.com/dir')).not.toContain('evil.com');
    });

    it('19 a target without a slash is no file', async () => {
      expect(await rawGet(port, 'a.txt')).toMatch(/^HTTP\/1\.1 40[04] /);
    });

    it('21 the query is never part of the path', async () => {
      for (const target of ['/a.txt?raw??', '/a.txt?x=../..']) {
        expect(await rawGet(port, target)).toMatch(/\r\n\r\n0123456789$/);
      }
    });

    it('22 a directory with a name like markup is not echoed', async () => {
      const answer = await rawGet(port, '/%3Cscript%3E');
      expect(answer).not.toContain('<script>');
    });

    it('26 .well-known is served', async () => {
      expect(await rawGet(port, '/.well-known/x.txt')).toMatch(/\r\n\r\nwell known$/);
    });

    it('a link that stays inside is served', async () => {
      expect(await rawGet(port, '/inside.txt')).toMatch(/\r\n\r\n0123456789$/);
    });

    it('32 FIFOs are refused at once, and hold no thread', async () => {
      for (let i = 0; i < 8; i++) expect(await rawGet(port, '/fifo')).toMatch(/^HTTP\/1\.1 404 /);
      expect(await rawGet(port, '/a.txt')).toMatch(/\r\n\r\n0123456789$/);
    });

    it('37 an unreadable file is a miss', async () => {
      const answer = await rawGet(port, '/secret-mode.txt');
      // Root may read everything.
      expect(answer).toMatch(process.getuid?.() === 0 ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 404 /);
      expect(answer).not.toContain(folder);
    });

    it('40 all spellings of a name are one file', async () => {
      const tags = new Set<string | undefined>();
      for (const target of ['/a.txt', '/%61.txt', '/a%2etxt', '/a%2Etxt?x']) {
        const { headers, text } = await get(port, target);
        expect(text).toBe('0123456789');
        tags.add(headers.etag);
      }
      expect(tags.size).toBe(1);
    });

    it('44 a name beyond ASCII is served in the form it has on disk', async () => {
      expect((await get(port, '/%C3%BC.txt')).text).toBe('u umlaut, composed');
    });

    it('57 what has no known type is bytes, and may not be guessed', async () => {
      const { headers } = await get(port, '/unknown.zzz');
      expect(headers['content-type']).toBe('application/octet-stream');
      expect(headers['x-content-type-options']).toBe('nosniff');
    });

    it('35 a directory with a name like a file is a directory', async () => {
      expect((await get(port, '/dir.txt')).status).toBe(html ? 301 : 404);
      expect((await get(port, '/dir.txt/')).status).toBe(404);
    });

    it('36 a slash after a file', async () => {
      expect((await get(port, '/a.txt/')).status).toBe(html ? 404 : 200);
    });

    it('52 other methods go on', async () => {
      for (const method of ['POST', 'DELETE', 'PUT', 'TRACE', 'OPTIONS', 'PATCH']) {
        const answer = await raw(
          port,
          `${method} /a.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
        );
        expect(answer).toMatch(/\r\n\r\npassed on$/);
      }
    });
  });

  describe('60 mounts', () => {
    it('take the path below themselves only', async () => {
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

describe('dotfiles', () => {
  it.each([
    ['ignore', 404],
    ['deny', 403],
    ['allow', 200],
  ] as const)('are answered as %s says', async (dotfiles, status) => {
    const app = staticFiles(root, { dotfiles, fallthrough: false });
    const port = await listen((req, res) => app(req, res, () => {}));
    for (const target of ['/.env', '/%2eenv', '/.git/config']) {
      expect(await rawGet(port, target)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    }
    expect(await rawGet(port, '/.well-known/x.txt')).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('fallthrough: false', () => {
  it('answers misses 404 and other methods 405, nothing of the request in them', async () => {
    const app = staticFiles(root, { fallthrough: false });
    const port = await listen((req, res) => app(req, res, () => {}));
    const miss = await rawGet(port, '/<img src=x>'.replaceAll(' ', '%20'));
    expect(miss).toMatch(/^HTTP\/1\.1 404 /);
    expect(miss).not.toContain('<img');
    const post = await get(port, '/a.txt', {}, 'POST');
    expect(post.status).toBe(405);
    expect(post.headers.allow).toBe('GET, HEAD');
  });
});

describe('symlinks: follow', () => {
  it('serves what lies outside, but no FIFO', async () => {
    const app = staticFiles(root, { symlinks: 'follow', fallthrough: false });
    const port = await listen((req, res) => app(req, res, () => {}));
    expect((await get(port, '/link.txt')).text).toBe(SECRET);
    expect((await get(port, '/up/x.txt')).text).toBe(SECRET);
    expect((await get(port, '/fifo')).status).toBe(404);
    expect((await get(port, '/zero')).status).toBe(404);
  });
});
