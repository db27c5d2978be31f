import { buildSchema } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { eachExpress } from '../express.ts';

const schema = buildSchema('type Query { hello: String }');
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';

eachExpress((express) => {
  const serve = (...args: Parameters<typeof graphqlHTTP>) => express().use('/graphql', graphqlHTTP(...args));

  it('answers a browser with the page', async () => {
    const { text } = await request(serve(schema)).get('/graphql').set('accept', BROWSER).expect(200);
    expect(text).toContain('<title>GraphiQL</title>');
  });

  it.each([undefined, '*/*', 'application/json', 'application/json, text/html'])(
    'answers Accept: %s with JSON',
    async (accept) => {
      const get = request(serve(schema)).get('/graphql?query={__typename}');
      if (accept !== undefined) get.set('accept', accept);
      await get.expect(200, { data: { __typename: 'Query' } });
    },
  );
});
