/** @tags once slow */
import { once } from 'node:events';
import { graphqlHTTP } from 'espalier';
import type { Browser, Page } from 'playwright-core';
import { launch } from '../chromium.ts';
import { createSchema, ONE, type Seen } from './schema.ts';
import { startServer, type TestServer } from './server.ts';

const seen: Seen = [];
const responses: string[] = [];
let browser: Browser;
let page: Page;
let server: TestServer;

beforeAll(async () => {
  browser = await launch();
  const handle = graphqlHTTP(createSchema(seen));
  server = await startServer((req, res) => {
    if (req.url !== '/graphql') {
      res.setHeader('content-type', 'text/html').end('<!doctype html><title>a page</title>');
      return;
    }
    res.once('finish', () => {
      responses.push(`${req.headers['sec-fetch-site'] ?? 'no metadata'} ${res.statusCode}`);
      server.server.emit('responded');
    });
    handle(req, res);
  });
});
afterAll(async () => {
  await browser.close();
  await server[Symbol.asyncDispose]();
});
beforeEach(async () => {
  seen.length = 0;
  responses.length = 0;
  page = await browser.newPage();
});
afterEach(() => page.close());

/** Sends an upload from a page in one of the ways that need no preflight. */
function send(url: string, way: 'form' | 'fetch' | 'own'): Promise<unknown> {
  return page.evaluate(
    async ([target, kind, query]) => {
      const file = new File(['content'], 'photo.png', { type: 'image/png' });
      const fields = {
        operations: JSON.stringify({ query, variables: { file: null } }),
        map: '{"0":["variables.file"]}',
      };
      if (kind !== 'form') {
        const body = new FormData();
        for (const [name, value] of Object.entries(fields)) body.append(name, value);
        body.append('0', file);
        if (kind === 'fetch')
          return fetch(target, { method: 'POST', mode: 'no-cors', credentials: 'include', body }).then(
            () => undefined,
          );
        return (await fetch(target, { method: 'POST', body })).json();
      }
      const form = document.createElement('form');
      Object.assign(form, {
        method: 'post',
        enctype: 'multipart/form-data',
        action: target,
        target: 'frame',
      });
      for (const [name, value] of Object.entries(fields))
        form.append(Object.assign(document.createElement('input'), { name, value }));
      const chosen = new DataTransfer();
      chosen.items.add(file);
      form.append(
        Object.assign(document.createElement('input'), { type: 'file', name: '0', files: chosen.files }),
      );
      document.body.append(Object.assign(document.createElement('iframe'), { name: 'frame' }), form);
      form.submit();
      return undefined;
    },
    [url, way, ONE] as const,
  );
}

describe('in Chromium, a page of another site', () => {
  // Browsers send fetch metadata only to trustworthy origins, and Origin to all.
  it.each([
    ['form', '127.0.0.1', 'cross-site 403'],
    ['fetch', '127.0.0.1', 'cross-site 403'],
    ['form', 'api.test', 'no metadata 403'],
    ['fetch', 'api.test', 'no metadata 403'],
  ] as const)('a page of another site cannot upload by %s to %s', async (way, host, expected) => {
    await page.goto(`http://evil.test:${server.port}/`);
    const responded = once(server.server, 'responded');
    await send(`http://${host}:${server.port}/graphql`, way);
    await responded;
    expect(responses).toEqual([expected]);
    expect(seen).toEqual([]);
  });
});

describe('in Chromium, a page of the same site', () => {
  it.each([['127.0.0.1'], ['api.test']])(
    'a page of the same site uploads with fetch and FormData on %s',
    async (host) => {
      await page.goto(`http://${host}:${server.port}/`);
      const response = await send(`http://${host}:${server.port}/graphql`, 'own');
      expect(response).toMatchObject({
        data: { one: { filename: 'photo.png', mimetype: 'image/png', text: 'content' } },
      });
    },
  );

  it('a page of the same site uploads with a plain form', async () => {
    await page.goto(`http://127.0.0.1:${server.port}/`);
    const responded = once(server.server, 'responded');
    await send(`http://127.0.0.1:${server.port}/graphql`, 'form');
    await responded;
    expect(responses).toEqual(['same-origin 200']);
    expect(seen).toHaveLength(1);
  });
});
