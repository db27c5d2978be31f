import http from 'node:http';
import connectApp from 'connect';
import { buildSchema } from 'graphql';
// Loaded before the tests: they wait for warnings for a few milliseconds only.
import 'ws';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createServer } from '../../middleware/server.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { Middleware } from '../../types/connect.ts';
import type { SubscriptionTarget } from '../../types/graphql.ts';
import type { SubscriptionOptions } from '../../types/subscriptions.ts';
import { eachExpress } from '../express.ts';

const schema = buildSchema('type Query { hello: String }');
const handler = graphqlHTTP(schema);
const next: Middleware = (_req, _res, next) => next();

let warned: jest.SpyInstance;
beforeEach(() => {
  warned = jest.spyOn(console, 'warn').mockImplementation();
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** Attaches subscriptions and returns the warnings. */
async function warnings(
  server: http.Server,
  target: SubscriptionTarget,
  options?: SubscriptionOptions,
  later?: () => void,
): Promise<unknown[][]> {
  const subscriptions = attachSubscriptions(server, target, options);
  later?.();
  await new Promise((resolve) => setTimeout(resolve, 5));
  await subscriptions.close();
  return warned.mock.calls;
}

const WARNING = [
  [
    expect.stringMatching(
      /attachSubscriptions was given a schema, but a handler of graphqlHTTP is mounted on \/\S+\. .*pass the handler, attachSubscriptions\(server, handler\)/,
    ),
  ],
];

eachExpress((express) => {
  const router = (path: string): ReturnType<typeof express.Router> => {
    const inner = express.Router();
    inner.use(path, handler);
    return inner;
  };
  const mounts: [string, () => http.RequestListener][] = [
    ['app.use', () => express().use(next).use('/graphql', next, handler)],
    ['app.use without a path', () => express().use(handler)],
    ['app.all', () => express().all('/graphql', handler)],
    ['a router', () => express().use(router('/graphql'))],
    ['a trailing slash', () => express().use('/graphql/', handler)],
  ];

  it.each(mounts)(
    'attachSubscriptions with a schema warns once about a handler that %s mounts',
    async (_, make) => {
      for (const server of [http.createServer(make()), createServer(make())]) {
        expect(await warnings(server, schema)).toEqual(WARNING);
        warned.mockClear();
      }
    },
  );

  it('attachSubscriptions with a schema warns about a handler in a router with a prefix', async () => {
    const server = http.createServer(express().use('/api', router('/live')));
    expect(await warnings(server, schema, { path: '/api/live' })).toEqual(WARNING);
  });

  it('attachSubscriptions with a schema warns about a handler that is mounted after it', async () => {
    const app = express();
    const server = http.createServer(app);
    expect(await warnings(server, schema, {}, () => void app.use('/graphql', handler))).toEqual(WARNING);
  });

  it.each<[string, () => http.RequestListener, SubscriptionTarget, SubscriptionOptions]>([
    ['with the handler', () => express().use('/graphql', handler), handler, {}],
    ['without a handler', () => express().use('/graphql', next).all('/graphql', next), schema, {}],
    ['without any middleware', () => express(), schema, {}],
    ['on another path', () => express().use('/graphql', handler), schema, { path: '/live' }],
    ['below the handler', () => express().use('/graphql', handler), schema, { path: '/graphql/live' }],
    ['on a path that cannot be decoded', () => express().use('/:any', handler), schema, { path: '/%zz' }],
  ])('attachSubscriptions %s warns of nothing', async (_, make, target, options) => {
    expect(await warnings(http.createServer(make()), target, options)).toEqual([]);
  });
});

it('attachSubscriptions with a schema warns about a handler of a Connect app', async () => {
  const app = connectApp().use('/other', next).use('/graphql', handler);
  expect(await warnings(http.createServer(app), schema)).toEqual(WARNING);
  warned.mockClear();
  expect(await warnings(http.createServer(app), schema, { path: '/graphql2' })).toEqual([]);
});

it.each([
  ['nothing', undefined],
  [
    'a function with other members',
    Object.assign(() => undefined, { stack: 'x', router: { stack: [null, 1, {}] } }),
  ],
])('attachSubscriptions with a schema warns of nothing when the listener is %s', async (_, listener) => {
  expect(await warnings(http.createServer(listener), schema)).toEqual([]);
});
