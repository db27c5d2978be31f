/** @tags once slow */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildSchema } from 'graphql';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { LAUNCH_OPTIONS } from '../chromium.ts';
import { until } from '../until.ts';
import { type Running, run } from './server.ts';

const profile = mkdtempSync(join(tmpdir(), 'csrf-'));
let runs = 0;
let reads = 0;
let requested: IncomingMessage[] = [];
const schema = buildSchema('type Query { hello: String } type Mutation { add: Int }');
const handler = graphqlHTTP(schema, {
  graphiql: false,
  rootValue: { add: () => ++runs, hello: () => `read ${++reads}` },
});

/** Forwards every request of its pages, as workers that add a cache do. */
const WORKER = `
  addEventListener('install', () => skipWaiting());
  addEventListener('activate', (event) => event.waitUntil(clients.claim()));
  addEventListener('fetch', (event) => event.respondWith(fetch(event.request)));
`;

/** The API and a page of the same site. Under another host name the server is the other site. */
function site(req: IncomingMessage, res: ServerResponse): void {
  if (req.url?.startsWith('/graphql')) {
    requested.push(req);
    if (req.url.includes('?cors')) {
      res.setHeader('access-control-allow-origin', req.headers.origin as string);
      res.setHeader('access-control-allow-credentials', 'true');
    }
    handler(req, res);
  } else {
    const type = req.url === '/worker.js' ? 'text/javascript' : 'text/html';
    res.writeHead(200, {
      'content-type': type,
      'set-cookie': ['session=1', 'shared=1; SameSite=None; Secure'],
    });
    if (req.url === '/worker.js') return void res.end(WORKER);
    res.end('<!doctype html><title>page</title><body></body>');
  }
}

let browser: BrowserContext;
let running: Running;
beforeAll(async () => {
  running = await run(site);
  // Chromium sends cookies to other sites only with this setting, other browsers without.
  mkdirSync(join(profile, 'Default'));
  const preferences = { profile: { cookie_controls_mode: 0, block_third_party_cookies: false } };
  writeFileSync(join(profile, 'Default/Preferences'), JSON.stringify(preferences));
  browser = await chromium.launchPersistentContext(profile, { ...LAUNCH_OPTIONS, ignoreHTTPSErrors: true });
});
const servers: Server[] = [];
afterAll(async () => {
  await browser.close();
  for (const server of servers) server.close().closeAllConnections();
  await running.close();
  rmSync(profile, { recursive: true, force: true });
});

/** Ways in which a page can send a GET without a preflight. */
const ways: Record<string, (page: Page, url: string) => Promise<unknown>> = {
  link: (page, url) =>
    Promise.all([
      page.waitForNavigation(),
      page.evaluate((href) => {
        const link = document.createElement('a');
        link.href = href;
        document.body.append(link);
        link.click();
      }, url),
    ]),
  image: (page, url) =>
    page.evaluate(
      (src) =>
        new Promise((resolve) => {
          const image = new Image();
          image.onload = resolve;
          image.onerror = resolve;
          image.src = src;
        }),
      url,
    ),
  form: (page, url) =>
    Promise.all([
      page.waitForNavigation(),
      page.evaluate((action) => {
        const form = document.createElement('form');
        const input = document.createElement('input');
        form.action = action.split('?')[0] as string;
        input.name = 'query';
        input.value = 'mutation { add }';
        form.append(input);
        document.body.append(form);
        form.submit();
      }, url),
    ]),
  'fetch without CORS': (page, url) =>
    page.evaluate(
      (href) => fetch(href, { mode: 'no-cors', credentials: 'include' }).then(() => undefined),
      url,
    ),
  frame: (page, url) =>
    page.evaluate(
      (src) =>
        new Promise((resolve) => {
          const frame = document.createElement('iframe');
          frame.onload = resolve;
          frame.src = src;
          document.body.append(frame);
        }),
      url,
    ),
};

// Browsers send fetch metadata only to trustworthy origins, such as loopback, and not to other plain HTTP.
describe.each([
  ['with fetch metadata', '127.0.0.1', 'localhost', true],
  ['on plain HTTP, without fetch metadata', 'api.test', 'evil.test', false],
])('a browser %s', (_title, own, otherHost, metadata) => {
  const at = (host: string, path: string): string => `http://${host}:${running.port}${path}`;
  const mutation = '/graphql?query=mutation{add}';
  beforeEach(() => {
    runs = 0;
    requested = [];
  });
  const visit = async (host: string): Promise<Page> => {
    const page = await browser.newPage();
    await page.goto(at(host, '/'));
    return page;
  };

  it.each(Object.keys(ways))('the API does not run a mutation for a %s of another site', async (way) => {
    await (await visit(own)).close();
    const page = await visit(otherHost);
    await ways[way]?.(page, at(own, mutation));
    expect(requested.map(({ headers }) => headers['sec-fetch-site'] !== undefined)).toEqual([metadata]);
    expect(runs).toBe(0);
    await page.close();
  });

  it.each(['image', 'frame'])('the API does not run a mutation for an %s on its own page', async (way) => {
    const page = await visit(own);
    await ways[way]?.(page, at(own, mutation));
    expect([requested.length, runs]).toEqual([1, 0]);
    await page.close();
  });

  it('the API runs a mutation for a same-origin script, over POST and over GET with a preflight header', async () => {
    const page = await visit(own);
    const texts = await page.evaluate(
      async ([url]) => [
        await (await fetch(url as string, { headers: { 'GraphQL-Require-Preflight': '1' } })).text(),
        await (
          await fetch('/graphql', {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: '{"query":"mutation { add }"}',
          })
        ).text(),
      ],
      [at(own, mutation)],
    );
    expect(texts).toEqual(['{"data":{"add":1}}', '{"data":{"add":2}}']);
    await page.close();
  });

  it(`the API ${metadata ? 'runs' : 'does not run'} a mutation over GET for a same-origin script that accepts only JSON`, async () => {
    const page = await visit(own);
    const statuses = await page.evaluate(
      async (url) => [
        (await fetch(url)).status,
        (await fetch(url, { headers: { accept: 'application/json' } })).status,
      ],
      at(own, mutation),
    );
    expect([statuses, runs]).toEqual(metadata ? [[403, 200], 1] : [[403, 403], 0]);
    await page.close();
  });
});

// Over TLS, since browsers send no cookie of another site without it.
it('the API executes no query with cookies for a script of another site, unless CORS lets it read the result', async () => {
  const [key, cert] = ['key.pem', 'cert.pem'].map((name) =>
    readFileSync(join(__dirname, '../fixtures/tls', name)),
  );
  const server = createServer({ key, cert }, site).listen(0, '127.0.0.1');
  await once(server, 'listening');
  servers.push(server);
  const { port } = server.address() as AddressInfo;
  const page = await browser.newPage();
  const read = (path: string) =>
    page.evaluate(
      (url) =>
        fetch(url, { credentials: 'include' }).then(
          (response) => response.text(),
          () => 'unreadable',
        ),
      `https://api.test:${port}${path}`,
    );
  for (const host of ['api.test', 'evil.test']) await page.goto(`https://${host}:${port}/`);
  [requested, reads] = [[], 0];
  expect(await read('/graphql?query={hello}')).toBe('unreadable');
  expect(requested[0]?.headers).toMatchObject({
    cookie: 'shared=1',
    'sec-fetch-mode': 'cors',
    'sec-fetch-site': 'cross-site',
  });
  expect(reads).toBe(0);
  expect(await read('/graphql?cors&query={hello}')).toBe('{"data":{"hello":"read 1"}}');
  await page.close();
});

/** Elements of a page that send a GET in CORS mode, which a service worker can forward. */
const ELEMENTS = [
  '<img crossorigin src="URL">',
  '<link rel="stylesheet" crossorigin href="URL">',
  '<link rel="preload" as="fetch" crossorigin href="URL">',
  '<link rel="modulepreload" href="URL">',
  '<link rel="modulepreload" as="json" href="URL">',
  '<audio crossorigin preload="auto" src="URL"></audio>',
  '<video crossorigin preload="auto" src="URL"></video>',
  '<svg><use href="URL#a"></use></svg>',
];

describe('a page with a service worker that forwards every request', () => {
  const at = (path: string): string => `http://127.0.0.1:${running.port}${path}`;
  let page: Page;
  beforeAll(async () => {
    page = await browser.newPage();
    await page.goto(at('/'));
    await page.evaluate(async () => {
      await navigator.serviceWorker.register('/worker.js');
      while (navigator.serviceWorker.controller === null) {
        await new Promise((resolve) => navigator.serviceWorker.addEventListener('controllerchange', resolve));
      }
    });
  });
  afterAll(async () => {
    await page.evaluate(async () => (await navigator.serviceWorker.getRegistration())?.unregister());
    await page.close();
  });
  beforeEach(() => {
    runs = 0;
    requested = [];
  });

  it.each(ELEMENTS)('the API runs no mutation over GET for %s', async (element) => {
    await page.evaluate(
      (html) => document.body.insertAdjacentHTML('beforeend', html),
      // A different URL, so that no other element of the page has preloaded it.
      element.replace('URL', at(`/graphql?query=mutation{add}&element=${ELEMENTS.indexOf(element)}`)),
    );
    await until(() => requested.length > 0);
    expect([requested[0]?.headers['sec-fetch-dest'], runs]).toEqual(['empty', 0]);
  });

  it('the API runs a mutation over GET of the page if the script accepts only JSON', async () => {
    const status = await page.evaluate(
      async (url) => (await fetch(url, { headers: { accept: 'application/json' } })).status,
      at('/graphql?query=mutation{add}&element=none'),
    );
    expect([status, runs]).toEqual([200, 1]);
  });
});
