/** @tags once slow */
import type { Server } from 'node:http';
import express from 'express';
import type { Browser, Page } from 'playwright-core';
import { graphqlHTTP } from '../../middleware/index.ts';
import { launch } from '../chromium.ts';
import { listen } from '../kit.ts';
import { schemaOf } from './service.ts';

let server: Server;
let browser: Browser;
let page: Page;
let executions: string[] = [];

const schema = schemaOf(
  `type Query {
    fresh: Int @cacheControl(maxAge: 60)
    stale: Int @cacheControl(maxAge: 1)
    plain: Int
    me: String @cacheControl(maxAge: 60, scope: PRIVATE)
  }`,
  {
    Query: Object.fromEntries(
      ['fresh', 'stale', 'plain', 'me'].map((name) => [
        name,
        (_source: unknown, _args: unknown, { user }: { user: string }) => {
          executions.push(name);
          return name === 'me' ? user : 1;
        },
      ]),
    ),
  },
);

beforeAll(async () => {
  const app = express()
    .get('/', (_req, res) => void res.type('html').send('<!doctype html><title>page</title>'))
    .use(
      '/graphql',
      graphqlHTTP(schema, {
        httpCache: true,
        context: ({ headers }) => ({ user: /user=(\w+)/.exec(headers.cookie ?? '')?.[1] ?? 'none' }),
      }),
    );
  const listening = await listen(app, '/');
  server = listening.server;
  browser = await launch();
  page = await (await browser.newContext()).newPage();
  await page.goto(listening.url);
});

afterAll(() => browser.close());

beforeEach(() => {
  executions = [];
});

/** Sends a query with fetch in the page. */
const ask = (query: string, method = 'GET'): Promise<unknown> =>
  page.evaluate(
    async ([text, verb]) => {
      const url = verb === 'GET' ? `/graphql?query=${encodeURIComponent(text as string)}` : '/graphql';
      const init =
        verb === 'GET'
          ? {}
          : {
              method: verb as string,
              headers: { 'content-type': 'application/json' },
              body: JSON.stringify({ query: text }),
            };
      return (await fetch(url, init)).json();
    },
    [query, method],
  );

it('Chromium gets a fresh result from its cache', async () => {
  for (let i = 0; i < 3; i++) expect(await ask('{ fresh }')).toEqual({ data: { fresh: 1 } });
  expect(executions).toEqual(['fresh']);
});

it('Chromium revalidates a stale result by its ETag', async () => {
  await ask('{ stale }');
  await new Promise((resolve) => setTimeout(resolve, 2100));
  const status = new Promise<number>((resolve) =>
    server.prependOnceListener('request', (_req, res) => res.once('finish', () => resolve(res.statusCode))),
  );
  expect(await ask('{ stale }')).toEqual({ data: { stale: 1 } });
  expect(await status).toBe(304);
  expect(executions).toEqual(['stale', 'stale']);
});

it('Chromium does not store a result without a hint', async () => {
  await ask('{ plain }');
  await ask('{ plain }');
  expect(executions).toEqual(['plain', 'plain']);
});

it('Chromium does not use the private result of another user of the browser', async () => {
  const signIn = (user: string): Promise<void> =>
    page.context().addCookies([{ name: 'user', value: user, url: page.url() }]);
  await signIn('ann');
  expect(await ask('{ me }')).toEqual({ data: { me: 'ann' } });
  expect(await ask('{ me }')).toEqual({ data: { me: 'ann' } });
  expect(executions).toEqual(['me']);
  await signIn('bob');
  expect(await ask('{ me }')).toEqual({ data: { me: 'bob' } });
});

it('Chromium sends QUERY requests to its own site', async () => {
  expect(await ask('{ fresh plain }', 'QUERY')).toEqual({ data: { fresh: 1, plain: 1 } });
});
