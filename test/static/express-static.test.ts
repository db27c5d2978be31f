/** @tags node */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, symlinkSync, utimesSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { ErrorRequestHandler } from 'express';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { eachExpress } from '../express.ts';
import { get, listen, makeFolder, rawGet } from './fixture.ts';

// The cases of the test suites of serve-static and send, as requests that both middlewares get. Cases of send that depend on
// its own events or on its behaviour without a root have no counterpart in a middleware.
const folder = makeFolder({
  'secret.txt': 'outside',
  'www/numbers.txt': '123456789',
  'www/empty.txt': '',
  'www/page.html': '<p>page</p>',
  'www/page.txt': 'page',
  'www/twice.html.html': '<p>twice</p>',
  'www/no_extension': 'bytes',
  'www/unknown.zzz': 'bytes',
  'www/a space.txt': 'space',
  'www/do..ts.txt': 'dots',
  'www/name.d/inner.txt': 'inner',
  'www/users/index.html': '<p>users</p>',
  'www/users/tobi.txt': 'ferret',
  'www/pets/names.txt': 'tobi,loki',
  'www/other/home.htm': '<p>other</p>',
  'www/snow ☃/index.html': '<p>snow</p>',
  'www/both.txt': 'page of both',
  'www/both/inner.txt': 'inner',
  'www/.hidden.txt': 'hidden',
  'www/.folder/name.txt': 'hidden too',
  'www/.well-known/x.txt': 'well known',
});
const root = `${folder}/www`;
const DATE = 'Thu, 14 May 2026 10:00:00 GMT';
for (const name of ['numbers.txt', 'page.html', 'users/index.html']) {
  utimesSync(`${root}/${name}`, Date.parse(DATE) / 1000, Date.parse(DATE) / 1000);
}
mkdirSync(`${root}/empty-folder`);
symlinkSync('loop', `${root}/loop`);
symlinkSync('../secret.txt', `${root}/link.txt`);
chmodSync(root, 0o755);

interface Case {
  url: string;
  options?: StaticFilesOptions;
  method?: string;
  headers?: Record<string, string>;
}
type Outcome = Record<string, unknown>;

const long = `/${'a'.repeat(600)}`;
const range = (value: string, more: Omit<Case, 'url'> = {}): Case => ({
  url: '/numbers.txt',
  ...more,
  headers: { Range: value, ...more.headers },
});
const conditional = (headers: Record<string, string>): Case => ({ url: '/numbers.txt', headers });

const SAME: Case[] = [
  ...['/page.txt', '/users/tobi.txt', '/a%20space.txt', '/empty.txt', '/no_extension', '/unknown.zzz'],
  ...['/users/', '/page', '/page.html', '/none.txt', '/none/', '/pets/', '/users/tobi.txt/', '/do..ts.txt'],
  ...['/snow%20%E2%98%83/', '/name.d', '/.hidden.txt', '/users', '/', long],
  ...['/users?x=1', '/snow%20%E2%98%83', '/page.html?name=a', '/empty-folder', '/empty-folder/'],
].map((url) => ({ url }));
SAME.push(
  // Without the option, Express 4 serves files in folders whose name begins with a dot.
  { url: '/.folder/name.txt', options: { dotfiles: 'ignore' } },
  { url: '/.folder/', options: { dotfiles: 'ignore' } },
  { url: '/page.txt', method: 'HEAD' },
  { url: '/users', method: 'HEAD' },
  { url: '/page.txt', method: 'POST' },
  { url: '/page.txt', method: 'OPTIONS' },
);

const OPTIONS: StaticFilesOptions[] = [
  { cacheControl: false },
  { dotfiles: 'allow' },
  { dotfiles: 'deny' },
  { dotfiles: 'ignore' },
  { etag: false },
  { fallthrough: true },
  { index: false },
  { index: [] },
  { index: 'home.htm' },
  { index: ['none.html', 'home.htm', 'index.html'] },
  { extensions: false },
  { extensions: [] },
  { extensions: 'html' },
  { extensions: ['txt', 'html'] },
  { extensions: ['none', 'html'] },
];
const URLS = [
  '/page.txt',
  '/users/',
  '/users',
  '/other/',
  '/page',
  '/.hidden.txt',
  '/.folder/',
  '/pets/',
  '/none',
];
for (const options of OPTIONS) for (const url of URLS) SAME.push({ url, options });

SAME.push(
  ...['bytes=0-4', 'bytes=0-0', 'bytes=2-5', 'bytes=-3', 'bytes=3-', 'bytes=2-50', 'items=0-5'].map((value) =>
    range(value),
  ),
  range('bytes=0-2,2-4'),
  range('bytes=0-4', { headers: { 'If-Range': DATE } }),
  range('bytes=0-4', { headers: { 'If-Range': 'Thu, 14 May 2020 10:00:00 GMT' } }),
  range('bytes=0-4', { headers: { 'If-Range': '"other"' } }),
  range('bytes=0-4', { headers: { 'If-Range': 'neither' } }),
  conditional({ 'If-Modified-Since': DATE }),
  conditional({ 'If-Modified-Since': 'Thu, 14 May 2020 10:00:00 GMT' }),
  conditional({ 'If-None-Match': '"other"' }),
  conditional({ 'If-None-Match': '*' }),
  conditional({ 'If-Match': '*' }),
  conditional({ 'If-Unmodified-Since': DATE }),
  conditional({ 'If-Unmodified-Since': 'neither' }),
);

// With fallthrough: false both pass the same error to next.
const FALLTHROUGH: Case[] = [
  ...[
    '/page.txt',
    '/none',
    '/none.txt',
    '/none/',
    '/page.txt/x',
    long,
    '/users',
    '/pets/',
    '/empty-folder',
    '/.hidden.txt',
  ],
  ...[
    '/%',
    '/foo%',
    '/%ff',
    '/page.txt%00',
    '/../secret.txt',
    '/users/../../secret.txt',
    '/%2e%2e/secret.txt',
  ],
  ...['/..%2fsecret.txt', '/users/..%2f..%2fsecret.txt'],
].map((url) => ({ url, options: { fallthrough: false } }));
FALLTHROUGH.push(
  ...['/users', '/users/'].map((url) => ({ url, options: { fallthrough: false, index: false as const } })),
  ...['/.hidden.txt', '/.none', '/.folder', '/.folder/', '/.folder/name.txt', '/users/.none'].map((url) => ({
    url,
    options: { fallthrough: false, dotfiles: 'deny' as const },
  })),
  ...['/none', '/none.css'].map((url) => ({
    url,
    options: { fallthrough: false, extensions: ['htm', 'html'] },
  })),
);

/** Requests with another outcome: why, the request, and the outcome of staticFiles. */
const DIFFERENT: [reason: string, request: Case, ours: Outcome][] = [
  ['a suffix longer than the file selects all of it (RFC 9110 §14.1.2)', range('bytes=-50'), { status: 206 }],
  ['several ranges are sent as multipart/byteranges', range('bytes=0-1,4-5'), { status: 206 }],
  [
    'If-Range requires the exact date',
    range('bytes=0-1', { headers: { 'If-Range': new Date().toUTCString() } }),
    { status: 200 },
  ],
  ['Range is defined for GET only', range('bytes=0-1', { method: 'HEAD' }), { status: 200 }],
  [
    'a failed precondition gets a response, not an error',
    conditional({ 'If-Match': '"other"' }),
    { status: 412 },
  ],
  ['an unsatisfiable range gets a response, not an error', range('bytes=20-'), { status: 416 }],
  ['there is one spelling per file', { url: '/users//tobi.txt' }, { status: 299 }],
  ['there is one spelling per file', { url: '/users/../page.txt' }, { status: 299 }],
  ['there is one spelling per file', { url: '/users%2ftobi.txt' }, { status: 299 }],
  ['links stay inside the root', { url: '/link.txt' }, { status: 299 }],
  [
    '.well-known is served (RFC 8615)',
    { url: '/.well-known/x.txt', options: { dotfiles: 'ignore' } },
    { status: 200 },
  ],
  [
    'a link to itself gives a 404',
    { url: '/loop', options: { fallthrough: false } },
    {
      status: 298,
      body: {
        status: 404,
        statusCode: 404,
        expose: false,
        code: 'ELOOP',
        message: expect.stringContaining('ELOOP'),
      },
    },
  ],
  [
    'a page has priority over a directory without an index',
    { url: '/both', options: { extensions: ['txt'] } },
    { status: 200 },
  ],
];

const COMPARED = [
  ...[
    'content-type',
    'content-length',
    'content-range',
    'cache-control',
    'accept-ranges',
    'last-modified',
    'allow',
  ],
];

/** All options of the cases, as JSON: the index of an entry selects it in both servers. */
const OPTION_SETS = [
  ...new Set(
    [...SAME, ...FALLTHROUGH, ...DIFFERENT.map(([, request]) => request)].map(({ options }) =>
      toJson(options),
    ),
  ),
];

/** Infinity is written as a number that JSON parsers round to Infinity. */
function toJson(options: StaticFilesOptions = {}): string {
  const replacer = (_name: string, value: unknown): unknown =>
    value === Number.POSITIVE_INFINITY ? '∞' : value;
  return JSON.stringify(options, replacer).replace('"∞"', '1e999');
}

eachExpress((express, version) => {
  let theirPort: number;
  let ourPort: number;
  let theirProcess: ChildProcess;

  beforeAll(async () => {
    const script = join(__dirname, 'express-static-server.mjs');
    const sets = `[${OPTION_SETS.join(',')}]`;
    theirProcess = spawn(process.execPath, [script, version === 4 ? 'express4' : 'express', root, sets], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    ourPort = await listen(serveOurs());
    const [line] = await once(theirProcess.stdout as Readable, 'data');
    theirPort = Number(line);
  });
  afterAll(() => theirProcess.kill());

  function serveOurs(): RequestListener {
    const report: ErrorRequestHandler = (error, _req, res, _next) => {
      const { name, status, statusCode, expose, message, code } = error;
      res.status(298).json({ name, status, statusCode, expose, message, code });
    };
    const apps = OPTION_SETS.map((options) => {
      const app = express().disable('x-powered-by');
      app.use('/mount', staticFiles(root, { html: true, ...JSON.parse(options) }));
      app.use((_req, res) => void res.status(299).end());
      return app.use(report);
    });
    return (req, res) => apps[Number(req.headers['x-options'])]?.(Object(req), Object(res));
  }

  async function outcomesOf({ url, options, method, headers }: Case): Promise<[Outcome, Outcome]> {
    const selected = { ...headers, 'X-Options': String(OPTION_SETS.indexOf(toJson(options))) };
    const outcomes: Outcome[] = [];
    for (const port of [theirPort, ourPort])
      outcomes.push(await outcomeOf(port, `/mount${url}`, selected, method));
    return outcomes as [Outcome, Outcome];
  }

  async function outcomeOf(
    port: number,
    url: string,
    headers: Record<string, string>,
    method = 'GET',
  ): Promise<Outcome> {
    if (url.includes('/../')) {
      return {
        status: Number((await rawGet(port, url, `X-Options: ${headers['X-Options']}\r\n`)).slice(9, 12)),
      };
    }
    const response = await get(port, url, headers, method);
    const outcome: Outcome = { status: response.status };
    if (response.status === 298) outcome.body = JSON.parse(response.text);
    if (response.status === 301) {
      outcome.location = new URL(response.headers.location ?? '', `http://host${url}`).href;
    }
    if (![200, 206, 304].includes(response.status)) return outcome;
    // Express 4 writes the charset in upper case.
    for (const name of COMPARED) outcome[name] = response.headers[name]?.toString().toLowerCase();
    return { ...outcome, hasEtag: response.headers.etag !== undefined, text: response.text };
  }

  const title = ({ method = 'GET', url, options, headers }: Case): string =>
    `${method} ${url.slice(0, 40)} ${JSON.stringify({ ...options, ...headers })}`;

  it.each([...SAME, ...FALLTHROUGH].map((request) => [title(request), request] as const))(
    'staticFiles and express.static respond equally to %s',
    async (_title, request) => {
      const [theirs, ours] = await outcomesOf(request);
      expect(ours).toEqual(theirs);
    },
  );

  it.each(DIFFERENT.map(([reason, request, ours]) => [title(request), reason, request, ours] as const))(
    'staticFiles and express.static respond differently to %s: %s',
    async (_title, _reason, request, expected) => {
      const [theirs, ours] = await outcomesOf(request);
      expect(ours).toMatchObject(expected);
      expect(ours).not.toEqual(theirs);
    },
  );

  it('staticFiles calls setHeaders like express.static: for files, but not for 404 and redirects', async () => {
    const calls: unknown[][] = [[], []];
    const hook = (index: number) => (_res: unknown, path: string, stat: { size: number }) =>
      void calls[index]?.push([path, stat.size]);
    const theirs = await listen(express().use(express.static(root, { setHeaders: hook(0) })));
    const ours = await listen(express().use(staticFiles(root, { html: true, setHeaders: hook(1) })));
    for (const path of ['/page.txt', '/users/', '/users', '/none', '/numbers.txt']) {
      for (const port of [theirs, ours]) await get(port, path, { 'If-Modified-Since': DATE });
    }
    expect(calls[0]).toHaveLength(3);
    expect(calls[1]).toEqual(calls[0]);
  });

  it.each([
    ['express.static', () => express.static(root)],
    ['staticFiles', () => staticFiles(root)],
  ])('%s evaluates the ETags that it sent', async (_name, make) => {
    const port = await listen(express().use(make()));
    const etag = (await get(port, '/numbers.txt')).headers.etag as string;
    for (const [headers, status] of [
      [{ 'If-None-Match': etag }, 304],
      [{ 'If-None-Match': `"a", ${etag}, "b"` }, 304],
      [{ 'If-Match': etag }, 200],
      [{ Range: 'bytes=0-3', 'If-Range': etag }, 206],
    ] as const) {
      expect((await get(port, '/numbers.txt', headers)).status).toBe(status);
    }
  });
});
