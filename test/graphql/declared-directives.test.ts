/** @tags once */
import { buildSchema } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';

const schema = buildSchema(`
  directive @defer(if: Boolean! = true, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT
  directive @stream(if: Boolean! = true, label: String, initialCount: Int = 0) on FIELD
  type Query { hello: String other: Query list: [Int] }
`);
const rootValue = { hello: 'world', other: { hello: 'deferred' }, list: [1, 2] };

describe.each(['compiled', 'graphql-js'] satisfies GraphQLOptions['engine'][])(
  'a schema with @defer and @stream, under %s',
  (engine) => {
    const handler = graphqlHTTP(schema, { engine, rootValue });

    it.each([
      ['{ hello }', { hello: 'world' }],
      ['{ hello ... @defer { other { hello } } }', { hello: 'world', other: { hello: 'deferred' } }],
      ['{ ... @defer(if: false) { hello } }', { hello: 'world' }],
      ['{ list @stream(initialCount: 1) }', { list: [1, 2] }],
    ])('graphqlHTTP sends one complete response for %s', async (query, data) => {
      await request(handler).post('/graphql').send({ query }).expect(200, { data });
    });
  },
);
