/** @tags once slow */
import type { AddressInfo } from 'node:net';
import express from 'express';
import request from 'supertest';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/index.ts';
import { schemaOf } from './service.ts';

type Headers = Readonly<Record<string, string>>;
type Identify = (req: { headers: NodeJS.Dict<string | string[]> }) => string | undefined;

const userOf: Identify = ({ headers }) => {
  const sent = [headers.cookie, headers.authorization, headers['x-api-key'], headers['x-user']].find(Boolean);
  return sent === undefined ? undefined : /user-\w+/.exec(String(sent))?.[0];
};

/** The ways in which a request names its user. */
const CREDENTIALS: Readonly<Record<string, (user: string) => Headers>> = {
  none: () => ({}),
  cookie: (user) => ({ cookie: `session=${user}` }),
  authorization: (user) => ({ authorization: `Bearer ${user}` }),
  'cookie and authorization': (user) => ({ cookie: `session=${user}`, authorization: `Bearer ${user}` }),
  'api key': (user) => ({ 'x-api-key': user }),
  'member of the request': (user) => ({ 'x-user': user }),
};

/** The values of the option `key`. */
const KEYS: Readonly<Record<string, NonNullable<Exclude<GraphQLOptions['responseCache'], boolean>>['key']>> =
  {
    'no key': undefined,
    'key of the user': (req) => userOf(req) ?? null,
    'key of the context': (_req, context) => (context as { user?: string }).user ?? null,
    'key or anonymous': (req) => userOf(req) ?? 'anonymous',
    'key null': () => null,
  };

/** The scopes that a field may have; each resolver returns data of the user. */
const FIELDS: Readonly<Record<string, string>> = {
  'scope PUBLIC': 'open',
  'scope PRIVATE': 'own',
  'scope PRIVATE of the resolver': 'dynamic',
  'scope PRIVATE of a nested type': 'nested { name }',
};

const schema = schemaOf(
  `type Query {
    open: String @cacheControl(maxAge: 60)
    own: String @cacheControl(maxAge: 60, scope: PRIVATE)
    dynamic: String @cacheControl(maxAge: 60)
    nested: User @cacheControl(maxAge: 60)
  }
  type User @cacheControl(maxAge: 60, scope: PRIVATE) { name: String }`,
  {
    Query: {
      open: (_: unknown, __: unknown, { user }: { user?: string }) => later(user),
      own: (_: unknown, __: unknown, { user }: { user?: string }) => later(user),
      dynamic(
        _: unknown,
        __: unknown,
        { user }: { user?: string },
        { cacheControl }: { cacheControl: { setCacheHint(hint: object): void } },
      ) {
        cacheControl.setCacheHint({ scope: 'PRIVATE' });
        return later(user);
      },
      nested: (_: unknown, __: unknown, { user }: { user?: string }) => later({ name: user }),
    },
  },
);

const later = <T>(value: T): Promise<T> =>
  new Promise((resolve) => setTimeout(resolve, Math.random() * 4, value));

function serve(key: string, httpCache: boolean): express.Express {
  const app = express();
  // Authentication middleware.
  app.use((req, _res, next) => {
    if (req.headers['x-user'] !== undefined) Object.assign(req, { user: req.headers['x-user'] });
    next();
  });
  const responseCache = { key: KEYS[key], staleWhileRevalidate: '60s', staleIfError: '60s' };
  return app.use(
    '/graphql',
    graphqlHTTP(schema, { responseCache, httpCache, context: (req) => ({ user: userOf(req) }) }),
  );
}

/** Whether Cache-Control is written. No lookup depends on it, so that two credentials show it. */
const settingsOf = (credential: string): readonly boolean[] =>
  ['none', 'cookie'].includes(credential) ? [true, false] : [true];

const cases = Object.keys(CREDENTIALS).flatMap((credential) =>
  Object.keys(KEYS).flatMap((key) =>
    Object.keys(FIELDS).flatMap((scope) =>
      settingsOf(credential).map((on) => [credential, key, scope, on] as const),
    ),
  ),
);

it.each(cases)(
  'no user gets the result of another one: credential %s, %s, %s, cacheControl %s',
  async (credential, key, scope, cacheControl) => {
    const app = serve(key, cacheControl);
    const server = app.listen(0);
    const { port } = server.address() as AddressInfo;
    try {
      const query = `{ ${FIELDS[scope]} }`;
      const send = async (user: string | undefined, method: 'get' | 'post'): Promise<void> => {
        const headers = user === undefined ? {} : (CREDENTIALS[credential]?.(user) ?? {});
        const url = `http://localhost:${port}/graphql`;
        const response =
          method === 'get'
            ? await fetch(`${url}?query=${encodeURIComponent(query)}`, { headers })
            : await fetch(url, {
                method: 'POST',
                headers: { ...headers, 'content-type': 'application/json' },
                body: JSON.stringify({ query }),
              });
        const name = (await response.text()).match(/user-\w+/)?.[0];
        const cacheHeader = response.headers.get('cache-control');
        const own = credential === 'none' ? undefined : user;
        expect(name).toBe(own);
        // Shared caches must not store what depends on a user.
        if (own !== undefined && key === 'no key') expect(cacheHeader).not.toMatch(/public/);
        if (scope !== 'scope PUBLIC') expect(cacheHeader).not.toMatch(/public/);
      };
      // The second round finds what the first one has stored.
      for (let round = 0; round < 2; round++) {
        const users = ['user-a', 'user-b', undefined, 'user-a', 'user-b', undefined];
        await Promise.all(users.map((user, index) => send(user, index < 3 ? 'get' : 'post')));
      }
    } finally {
      server.closeAllConnections();
      server.close();
    }
  },
);

it('the results of each user are stored with a key', async () => {
  const app = serve('key of the user', true);
  const send = (user: string) =>
    request(app).get('/graphql').query({ query: '{ own }' }).set('cookie', `session=${user}`);
  for (const user of ['user-a', 'user-b']) {
    await send(user);
    const { headers, body } = await send(user);
    expect([headers.age, body.data.own]).toEqual(['0', user]);
  }
});
