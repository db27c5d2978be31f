import { buildSchema } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { eachExpress } from '../express.ts';

const schema = buildSchema('type Query { hello(name: String): String }');
const rootValue = { hello: ({ name }: { name?: string }) => `Hello ${name ?? 'world'}` };

eachExpress((express) => {
  const app = express();
  app.use('/graphql', graphqlHTTP(schema, { rootValue }));

  it('graphqlHTTP executes a query over POST', async () => {
    const query = 'query ($name: String) { hello(name: $name) }';
    await request(app)
      .post('/graphql')
      .send({ query, variables: { name: 'Ada' } })
      .expect(200, { data: { hello: 'Hello Ada' } })
      .expect('content-type', /^application\/json/);
  });

  it('graphqlHTTP executes a query over GET', async () => {
    await request(app)
      .get('/graphql')
      .query({ query: '{ hello }' })
      .expect(200, { data: { hello: 'Hello world' } });
  });
});
