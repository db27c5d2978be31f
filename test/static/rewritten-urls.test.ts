/** @tags node */
import { join } from 'node:path';
import connect from 'connect';
import express, { type RequestHandler } from 'express';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { eachExpress } from '../express.ts';
import { get, listen, makeFolder, type TestResponse } from './fixture.ts';

const FILES = {
  'www/tenants/acme-4711/index.html': '<p>acme',
  'www/tenants/acme-4711/index.md': 'acme',
  'www/tenants/acme-4711/docs/index.html': '<p>docs',
  'www/tenants/acme-4711/docs/guide.html': '<p>guide',
  'www/tenants/acme-4711/docs/guide.md': 'guide',
  'www/tenants/acme-4711/files/report.pdf': 'pdf',
};
const TENANT = '/tenants/acme-4711';
const root = join(makeFolder(FILES), 'www');

/** Gives requests another URL, as middleware does for tenants, versions and routes of a single page. */
const rewrite =
  (change: (url: string) => string): RequestHandler =>
  (req, _res, next) => {
    req.url = change(req.url);
    next();
  };

/** `/app` is the folder of the tenant, without its slash if the client has none. */
const toTenant = rewrite((url) => url.replace(/^\/app(?=[/?]|$)/, TENANT));

/** Nothing that a client gets may name what it did not ask for. */
function assertHidden({ headers, text }: TestResponse): void {
  expect(JSON.stringify(headers) + text).not.toContain('4711');
}

eachExpress((createApp) => {
  const start = (options: StaticFilesOptions, change = toTenant, mount = '/'): Promise<number> =>
    listen(createApp().use(mount, change, staticFiles(root, { html: true, ...options })) as never);

  it.each([
    ['/app', './app/'],
    ['/app?a=1&b=%2F', './app/?a=1&b=%2F'],
    ['/app/docs', './docs/'],
  ])(
    'staticFiles redirects %s to %s, although middleware has given the request another URL',
    async (path, location) => {
      const response = await get(await start({}), path);
      expect([response.status, response.headers.location]).toEqual([301, location]);
      assertHidden(response);
      // The client arrives at the page, and is not sent on again.
      const port = await start({});
      expect((await get(port, new URL(location, `http://localhost${path}`).pathname)).status).toBe(200);
    },
  );

  it('staticFiles redirects to the path that the client asked for, below a mount too', async () => {
    const port = await start({}, toTenant, '/site');
    expect((await get(port, '/site/app')).headers.location).toBe('./app/');
    expect((await get(port, '/site/app/')).text).toBe('<p>acme');
  });

  it('staticFiles keeps the query of the client, and adds none of the middleware', async () => {
    const port = await start(
      {},
      rewrite((url) => url.replace(/^\/app\b/, `${TENANT}/docs?tenant=4711&old=`)),
    );
    expect((await get(port, '/app?x=1')).headers.location).toBe('./app/?x=1');
    expect((await get(port, '/app')).headers.location).toBe('./app/');
  });

  it('staticFiles serves a folder whose slash middleware has removed, instead of a redirect without end', async () => {
    const port = await start(
      {},
      rewrite(() => TENANT),
    );
    const response = await get(port, '/app/');
    expect([response.status, response.text]).toEqual([200, '<p>acme']);
    expect(
      (
        await get(
          await start(
            { listing: true },
            rewrite(() => `${TENANT}/files`),
          ),
          '/app/',
        )
      ).status,
    ).toBe(200);
  });

  it('staticFiles encodes the segment of a redirect, and follows no dots in it', async () => {
    const port = await start(
      {},
      rewrite(() => TENANT),
    );
    expect((await get(port, '/a%22%3Cb:c')).headers.location).toBe('./a%22%3Cb%3Ac/');
    for (const path of ['/%2e%2e', '/%zz']) expect((await get(port, path)).headers.location).toBeUndefined();
  });

  it('a listing shows the path that the client asked for, with links that lead from it to the files', async () => {
    const port = await start({ listing: true });
    const page = await get(port, '/app/files/');
    expect(page.text).toContain('<title>/app/files/</title>');
    assertHidden(page);
    const json = await get(port, '/app/files/', { accept: 'application/json' });
    expect(JSON.parse(json.text).path).toBe('/app/files/');
    const withSlash = await start(
      { listing: true },
      rewrite(() => `${TENANT}/files/`),
    );
    expect((await get(withSlash, '/app')).headers.location).toBe('./app/');
    assertHidden(await get(withSlash, '/app/'));
  });

  it('a variant has references that are right for the client, or none', async () => {
    const options: StaticFilesOptions = { cleanUrls: true, variants: ['md'] };
    const accept = { accept: 'text/markdown' };
    const port = await start(options);
    expect((await get(port, '/app/docs/guide', accept)).headers['content-location']).toBe('./guide.md');
    expect((await get(port, '/app/docs/guide')).headers.link).toContain('<./guide.md>');
    const home = await start(
      options,
      rewrite(() => `${TENANT}/`),
    );
    expect((await get(home, '/app', accept)).headers['content-location']).toBe('./app/index.md');
    const other = await start(
      options,
      rewrite(() => `${TENANT}/docs/guide`),
    );
    const response = await get(other, '/help', accept);
    expect([response.text, response.headers['content-location']]).toEqual(['guide', undefined]);
    expect((await get(other, '/help')).headers.link).toBeUndefined();
  });
});

it('staticFiles redirects to the path that the client asked for under Connect', async () => {
  const app = connect()
    .use(toTenant as never)
    .use(staticFiles(root, { html: true }));
  expect((await get(await listen(app), '/app')).headers.location).toBe('./app/');
});

it('staticFiles redirects like express.static, for paths of every kind', async () => {
  const paths = ['/app', '/app/', '/app/docs', '/app/docs/', '/app/none', '/app/docs?q', '/tenants', '/'];
  for (const change of [toTenant, rewrite(() => TENANT), rewrite(() => `${TENANT}/docs`)]) {
    const own = await listen(express().use(change, staticFiles(root, true)) as never);
    const theirs = await listen(express().use(change, express.static(root)) as never);
    for (const path of paths) {
      const [ours, expected] = await Promise.all([get(own, path), get(theirs, path)]);
      const target = ({ headers }: TestResponse) =>
        headers.location && new URL(headers.location, `http://localhost${path}`).href;
      // express.static redirects a path with a slash to itself.
      if (path.endsWith('/') && expected.status === 301) expect(ours.status).toBe(200);
      else expect([path, ours.status, target(ours)]).toEqual([path, expected.status, target(expected)]);
    }
  }
});
