/** @tags once */
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
