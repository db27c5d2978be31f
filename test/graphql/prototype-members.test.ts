/** @tags graphql engine */
import { graphqlHTTP, staticFiles } from 'espalier';
import { inject } from 'espalier/testing';
import express, { type Handler } from 'express';
import { buildSchema } from 'graphql';

// Some old libraries add functions to Object.prototype, which `for … in` then visits in every object.

const schema = buildSchema('type Query { hello: String } type Subscription { ticks: Int }');
const rootValue = {
  hello: 'world',
  async *ticks() {
    yield { ticks: 1 };
  },
};
const handler = graphqlHTTP(schema, { rootValue, cost: true });

/** As middleware for logs and compression does. */
const replaceEnd: Handler = (_req, res, next) => {
  const { end } = res;
  res.end = (...args: unknown[]) => Reflect.apply(end, res, args);
  next();
};
const app = express()
  .use('/plain', handler)
  .use(replaceEnd)
  .use('/graphql', handler)
  .use(staticFiles('test'));

beforeEach(() => {
  const helper = function helper() {
    return 'a function whose text has several lines, which no header may have';
  };
  Object.defineProperty(Object.prototype, 'helper', { value: helper, enumerable: true, configurable: true });
});
afterEach(() => {
  Reflect.deleteProperty(Object.prototype, 'helper');
});

it.each(['/plain', '/graphql'])(
  'the responses of graphqlHTTP at %s have no headers for members of Object.prototype',
  async (path) => {
    const { status, data, headers } = await inject(app, { path, query: '{ hello }' });
    expect([status, data]).toEqual([200, { hello: 'world' }]);
    expect(headers).toHaveProperty('graphql-cost');
    expect(Object.keys(headers)).not.toContain('helper');
  },
);

it.each(['text/event-stream', 'multipart/mixed;subscriptionSpec="1.0"'])(
  'streams of %s have no headers for members of Object.prototype',
  async (accept) => {
    const query = 'subscription { ticks }';
    const { status, text, headers } = await inject(app, { path: '/plain', query, headers: { accept } });
    expect(status).toBe(200);
    expect(text).toContain('"ticks":1}');
    expect(Object.keys(headers)).not.toContain('helper');
  },
);

it('the responses of staticFiles have no headers for members of Object.prototype', async () => {
  const { status, headers } = await inject(app, { path: '/tsconfig.json' });
  expect(status).toBe(200);
  expect(Object.keys(headers)).not.toContain('helper');
});
