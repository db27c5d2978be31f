/** @tags once */
import type { IncomingMessage } from 'node:http';
import express from 'express';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import identity from '../../src/cache/identity.json' with { type: 'json' };
import { appOf, get, schemaOf } from './service.ts';

it('a result is private if the request has a header or a parameter that identifies users', async () => {
  const schema = schemaOf('type Query { a: Int @cacheControl(maxAge: 60) }', { Query: { a: () => 1 } });
  const app = appOf(schema);
  expect((await get(app, '{ a }')).headers['cache-control']).toBe('public, max-age=60');
  const found: string[] = [];
  for (const name of identity.headers) {
    const { headers } = await get(app, '{ a }').set(name, 'x');
    if (headers['cache-control'] === 'private, max-age=60') found.push(name);
  }
  expect(found).toEqual(identity.headers);
  found.length = 0;
  for (const name of identity.parameters) {
    const { headers } = await get(app, '{ a }').query({ [name.toUpperCase()]: 'x' });
    if (headers['cache-control'] === 'private, max-age=60') found.push(name);
  }
  expect(found).toEqual(identity.parameters);
});

it('a result is private if middleware has removed the token of the user from the URL, or added it there', async () => {
  const schema = schemaOf('type Query { a: Int @cacheControl(maxAge: 60) }', { Query: { a: () => 1 } });
  const change = {
    remove: (url: string) => url.replace('&token=x', ''),
    add: (url: string) => `${url}&token=x`,
  };
  for (const [name, rewrite] of Object.entries(change)) {
    const app = express()
      .use((req, _res, next) => {
        req.url = rewrite(req.url);
        next();
      })
      .use(appOf(schema));
    const { headers } = await get(app, '{ a }').query(name === 'remove' ? { token: 'x' } : {});
    expect(headers['cache-control']).toBe('private, max-age=60');
  }
});

it('a stored result is not sent to another tenant, which middleware has added to the URL', async () => {
  const schema = schemaOf('type Query { tenant: String @cacheControl(maxAge: 60) }', {
    Query: { tenant: (_: unknown, _args: unknown, { tenant }: { tenant: string }) => tenant },
  });
  const context = ({ url }: IncomingMessage) => ({ tenant: /^\/(\w+)/.exec(url ?? '')?.[1] });
  const app = express()
    .use((req, _res, next) => {
      req.url = `/${req.get('x-tenant')}${req.url}`;
      next();
    })
    .use(graphqlHTTP(schema, { responseCache: true, context }));
  for (const tenant of ['ada', 'bob', 'ada']) {
    const { body } = await get(app, '{ tenant }').set('x-tenant', tenant);
    expect(body).toEqual({ data: { tenant } });
  }
});
