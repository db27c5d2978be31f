/** @tags once slow */
import type { IncomingMessage } from 'node:http';
import { graphqlHTTP } from '../../middleware/index.ts';
import type { CacheStore } from '../../types/response-cache.ts';
import { listen } from '../kit.ts';
import { schemaOf } from './service.ts';
import { type SharedCache, sharedCaches } from './shared-caches.ts';

interface Context {
  readonly language: string;
  readonly identity: string;
}

/** The identity that the application takes from a request. */
const identityOf = ({ headers }: IncomingMessage): string =>
  [headers.cookie, headers.authorization, headers['x-api-key']].filter(Boolean).join('+') || 'anonymous';

const ME = { me: (_source: unknown, _args: unknown, { identity }: Context) => identity };
const executions = new Map<string, number>();

const schema = schemaOf(
  `type Query {
    value(id: String!): String @cacheControl(maxAge: 60)
    short(id: String!): String @cacheControl(maxAge: 0, sharedMaxAge: 60)
    private(id: String!): String @cacheControl(maxAge: 60, scope: PRIVATE)
    plain(id: String!): String
    failing(id: String!): String @cacheControl(maxAge: 60)
    greeting(id: String!): String @cacheControl(maxAge: 60, vary: ["Accept-Language"])
    unscoped: User
    public: User @cacheControl(maxAge: 60, scope: PUBLIC)
    privateUser: User @cacheControl(maxAge: 60, scope: PRIVATE)
    shared: User @cacheControl(sharedMaxAge: 60)
    dynamic: User
    mixed: User @cacheControl(maxAge: 60)
  }
  type User { me: String private: String @cacheControl(scope: PRIVATE) }`,
  {
    Query: Object.fromEntries([
      ...['value', 'short', 'private', 'plain'].map((name) => [
        name,
        (_source: unknown, { id }: { id: string }) => countOf(id),
      ]),
      [
        'failing',
        (_source: unknown, { id }: { id: string }) => {
          throw new Error(countOf(id));
        },
      ],
      [
        'greeting',
        (_source: unknown, { id }: { id: string }, { language }: Context) => `${language} ${countOf(id)}`,
      ],
      ...['unscoped', 'public', 'privateUser', 'shared', 'mixed'].map((name) => [name, () => ({})]),
      [
        'dynamic',
        (
          _source: unknown,
          _args: unknown,
          _context: unknown,
          info: { cacheControl: { setCacheHint(hint: object): void } },
        ) => {
          info.cacheControl.setCacheHint({ maxAge: 60, scope: 'PUBLIC' });
          return {};
        },
      ],
    ]),
    User: { ...ME, private: ME.me },
  },
);

/** Counts the executions of a field for an id. */
function countOf(id: string): string {
  const count = (executions.get(id) ?? 0) + 1;
  executions.set(id, count);
  return `${id} ${count}`;
}

const handler = graphqlHTTP(schema, {
  httpCache: true,
  onError: false,
  context: (source: IncomingMessage): Context => ({
    language: String(source.headers['accept-language'] ?? 'none'),
    identity: identityOf(source),
  }),
});

const pathOf = (query: string): string => `/graphql?${new URLSearchParams({ query })}`;

/** Creates a handler whose stored result has an age, and the number of its lookups. */
function handlerWithAge(seconds: number): {
  readonly lookups: () => number;
  readonly handler: typeof handler;
} {
  let lookups = 0;
  const lifetime = 3_600_000;
  const store: CacheStore = {
    get() {
      lookups++;
      const storedAt = Date.now() - seconds * 1000;
      const policy = { maxAge: 60, sharedMaxAge: 3600, scope: 'PUBLIC', vary: [], tags: [] } as const;
      return {
        entry: { body: '{"data":{}}', policy, storedAt, lifetime, expires: storedAt + lifetime * 2 },
        version: 1,
      };
    },
    set: () => false,
    invalidate: () => undefined,
  };
  const responseCache = { store, staleWhileRevalidate: '1h' };
  return {
    lookups: () => lookups,
    handler: graphqlHTTP(schema, { httpCache: true, onError: false, responseCache }),
  };
}

describe.each(sharedCaches)('behind $name', ({ name, start }) => {
  let cache: SharedCache;

  beforeAll(async () => {
    const { port } = await listen(handler);
    cache = await start(port);
  });

  afterAll(async () => {
    await cache.close();
  });

  /** Sends a query twice and returns how often it was executed. */
  async function executionsOf(field: string, headers: Record<string, string> = {}): Promise<number> {
    const id = `${name}-${field}-${Object.keys(headers).join()}`;
    const path = pathOf(`{ ${field}(id: "${id}") }`);
    const first = await cache.send(path, headers);
    const second = await cache.send(path, headers);
    expect([first.status, second.status]).toEqual([200, 200]);
    return executions.get(id) ?? 0;
  }

  it('a shared cache stores a public result', async () => {
    expect(await executionsOf('value')).toBe(1);
  });

  it('a shared cache uses sharedMaxAge as the lifetime', async () => {
    expect(await executionsOf('short')).toBe(1);
  });

  it.each(['private', 'plain', 'failing'])(
    'a shared cache does not store the result of the field "%s"',
    async (field) => {
      expect(await executionsOf(field)).toBe(2);
    },
  );

  it.each([
    { cookie: 'session=1' },
    { authorization: 'Bearer 1' },
    { 'x-api-key': '1' },
    { 'x-forwarded-user': 'a' },
  ])('a shared cache does not store the result of a request with the headers %j', async (headers) => {
    expect(await executionsOf('value', headers)).toBe(2);
    expect(await executionsOf('short', headers)).toBe(2);
  });

  it('a shared cache selects a stored result by the headers of Vary', async () => {
    const path = pathOf(`{ greeting(id: "${name}-greeting") }`);
    const of = async (language: string): Promise<string> =>
      (await cache.send(path, { 'accept-language': language })).body;
    const german = await of('de');
    const english = await of('en');
    expect(german).toContain('de ');
    expect(english).toContain('en ');
    expect(await of('de')).toBe(german);
    expect(await of('en')).toBe(english);
  });

  it('a shared cache sends a stored result of the media type that the client accepts', async () => {
    const path = pathOf(`{ value(id: "${name}-types") }`);
    for (const accept of ['application/json', 'application/graphql-response+json', 'application/json']) {
      const { headers } = await cache.send(path, { accept });
      expect(headers['content-type']).toBe(`${accept}; charset=utf-8`);
    }
  });

  it('a shared cache compares the ETag of a result', async () => {
    const path = pathOf(`{ value(id: "${name}-conditional") }`);
    const { headers } = await cache.send(path);
    const { status } = await cache.send(path, { 'if-none-match': String(headers['etag']) });
    // undici passes conditional requests on, and the value has changed.
    const isPassed = name === 'undici';
    expect([status, executions.get(`${name}-conditional`)]).toEqual(isPassed ? [200, 2] : [304, 1]);
  });

  async function withAge(
    seconds: number,
    use: (cache: SharedCache, lookups: () => number) => Promise<void>,
  ): Promise<void> {
    const aged = handlerWithAge(seconds);
    const { port } = await listen(aged.handler);
    const inFront = await start(port);
    try {
      await use(inFront, aged.lookups);
    } finally {
      await inFront.close();
    }
  }

  it('a shared cache keeps a stored result of the server for the rest of its lifetime', async () => {
    await withAge(3597, async (inFront, lookups) => {
      await inFront.send(pathOf('{ plain(id: "age") }'));
      expect(lookups()).toBe(1);
      // Without the age it would be kept for another hour.
      while (lookups() === 1) await inFront.send(pathOf('{ plain(id: "age") }'));
    });
  });

  it('a shared cache does not keep an expired result of the server', async () => {
    await withAge(3700, async (inFront, lookups) => {
      for (const count of [1, 2, 3, 4]) {
        await inFront.send(pathOf('{ plain(id: "expired") }'));
        expect(lookups()).toBe(count);
      }
    });
  });

  const CREDENTIALS = [
    {},
    { cookie: 'C' },
    { authorization: 'A' },
    { 'x-api-key': 'K' },
    { cookie: 'C', authorization: 'A' },
  ];
  const FIELDS = ['unscoped', 'public', 'privateUser', 'shared', 'dynamic'];
  const combinations = CREDENTIALS.flatMap((first) =>
    CREDENTIALS.flatMap((second) =>
      [...FIELDS.map((field) => `${field} { me }`), 'mixed { me private }'].map((field) => ({
        first,
        second,
        field,
      })),
    ),
  );

  it('a shared cache sends no user the result of another user', async () => {
    const userOf = (headers: Record<string, string>, user: string): Record<string, string> =>
      Object.fromEntries(Object.entries(headers).map(([header, value]) => [header, `${value}-${user}`]));
    const check = async (path: string, headers: Record<string, string>): Promise<void> => {
      const { body } = await cache.send(path, headers);
      const identity = Object.values(headers).join('+') || 'anonymous';
      // The schema may declare the result of anonymous users public.
      const allowed = [identity, 'anonymous'];
      const [user] = Object.values(JSON.parse(body).data) as { me: string; private?: string }[];
      expect(allowed).toContain(user?.me);
      if (user?.private !== undefined) expect(user.private).toBe(identity);
    };
    // Each combination has another URL, which two users request several times in parallel.
    for (const [index, { first, second, field }] of combinations.entries()) {
      const path = pathOf(`{ x${index}: ${field} }`);
      const users = [userOf(first, 'u1'), userOf(second, 'u2')];
      await Promise.all([...users, ...users, ...users].map((headers) => check(path, headers)));
    }
  });
});
