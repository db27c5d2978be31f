/** @tags graphql */
import { createServer } from 'node:http';
import { cacheControlFromInfo } from '@apollo/cache-control-types';
import { type ExecutionArgs, execute, type GraphQLSchema } from 'graphql';
import { createClient } from 'graphql-ws';
import request from 'supertest';
import WebSocket from 'ws';
import {
  attachSubscriptions,
  type CacheControlInfo,
  type CacheHint,
  type GraphQLOptions,
  graphqlHTTP,
} from '../../middleware/index.ts';
import { listen } from '../kit.ts';
import { appOf, cacheControlOf, ENGINES, get, type Resolvers, schemaOf } from './service.ts';

/** Creates a resolver that passes `info.cacheControl` to a function and returns a value. */
const using =
  (use: (control: CacheControlInfo['cacheControl']) => void, value: unknown = { name: 'R2' }) =>
  (_source: unknown, _args: unknown, _context: unknown, info: CacheControlInfo) => {
    use(info.cacheControl);
    return value;
  };

const hinting = (hint: CacheHint, value?: unknown): ReturnType<typeof using> =>
  using(({ setCacheHint }) => setCacheHint(hint), value);

const DROID = 'type Droid { id: ID name: String! }';

interface Rule {
  readonly rule: string;
  readonly schema: string;
  readonly resolvers: Resolvers;
  readonly expected: string;
  readonly query?: string;
}

const RULES: Rule[] = [
  {
    rule: 'setCacheHint replaces the default',
    schema: `type Query { droid: Droid } ${DROID}`,
    resolvers: { Query: { droid: hinting({ maxAge: 60 }) } },
    expected: 'public, max-age=60',
  },
  {
    rule: 'setCacheHint replaces the lifetime of the schema',
    schema: `type Query { droid: Droid @cacheControl(maxAge: 60) } ${DROID}`,
    resolvers: { Query: { droid: hinting({ maxAge: 120 }) } },
    expected: 'public, max-age=120',
  },
  {
    rule: 'setCacheHint with a scope keeps the lifetime of the schema',
    schema: `type Query { droid: Droid @cacheControl(maxAge: 60) } ${DROID}`,
    resolvers: { Query: { droid: hinting({ scope: 'PRIVATE' }) } },
    expected: 'private, max-age=60',
  },
  {
    rule: 'setCacheHint can make a private field public',
    schema: `type Query { droid: Droid @cacheControl(maxAge: 60, scope: PRIVATE) } ${DROID}`,
    resolvers: { Query: { droid: hinting({ scope: 'PUBLIC' }) } },
    expected: 'public, max-age=60',
  },
  {
    rule: 'cacheHint.restrict sets the lifetime of a field without one',
    schema: `type Query { droid: Droid } ${DROID}`,
    resolvers: { Query: { droid: using(({ cacheHint }) => cacheHint.restrict({ maxAge: 60 })) } },
    expected: 'public, max-age=60',
  },
  {
    rule: 'cacheHint.restrict lowers and never raises a lifetime',
    schema: `type Query { droid: Droid @cacheControl(maxAge: 60) } ${DROID}`,
    resolvers: {
      Query: {
        droid: using(({ cacheHint }) => {
          cacheHint.restrict({ maxAge: 100, scope: 'PRIVATE' });
          cacheHint.restrict({ maxAge: 50, scope: 'PUBLIC' });
        }),
      },
    },
    expected: 'private, max-age=50',
  },
  {
    rule: 'reading cacheHint changes nothing',
    schema: `type Query { droid: Droid @cacheControl(maxAge: 60) } ${DROID}`,
    resolvers: {
      Query: {
        droid: using(({ cacheHint }) => {
          expect(cacheHint.policyIfCacheable()).toEqual({ maxAge: 60, scope: 'PUBLIC' });
          expect([cacheHint.maxAge, cacheHint.scope, cacheHint.sharedMaxAge]).toEqual([
            60,
            undefined,
            undefined,
          ]);
        }),
      },
    },
    expected: 'public, max-age=60',
  },
  {
    rule: 'a resolver that only reads a field without a hint keeps the default',
    schema: `type Query { droid: Droid } ${DROID}`,
    resolvers: {
      Query: { droid: using(({ cacheHint }) => expect(cacheHint.policyIfCacheable()).toBeNull()) },
    },
    expected: 'no-store',
  },
  {
    rule: 'cacheHintFromType returns the hint of a type',
    schema:
      'type Query { droid: Being } union Being = Droid type Droid @cacheControl(maxAge: 90) { name: String! }',
    resolvers: {
      Query: {
        droid: (
          _source: unknown,
          _args: unknown,
          _context: unknown,
          { schema, cacheControl }: CacheControlInfo,
        ) => {
          const type = schema.getType('Droid') as Parameters<typeof cacheControl.cacheHintFromType>[0];
          cacheControl.cacheHint.restrict(cacheControl.cacheHintFromType(type));
          return { name: 'R2' };
        },
      },
      Being: { __resolveType: () => 'Droid' },
    },
    query: '{ droid { ... on Droid { name } } }',
    expected: 'public, max-age=90',
  },
  {
    rule: 'a resolver of a list item restricts the result',
    schema: `type Query { droids: [Droid] @cacheControl(maxAge: 100) } type Droid { name: String! @cacheControl(maxAge: 90) }`,
    resolvers: {
      Query: { droids: () => [1, 2, 3] },
      Droid: {
        name: (source: number, _args: unknown, _context: unknown, info: CacheControlInfo) => {
          if (source === 2) info.cacheControl.setCacheHint({ maxAge: 20 });
          return `R${source}`;
        },
      },
    },
    query: '{ droids { name } }',
    expected: 'public, max-age=20',
  },
  {
    rule: 'the hint of the schema applies to calls that set none',
    schema: `type Query { droids: [Droid] @cacheControl(maxAge: 100) } type Droid { owner: Owner @cacheControl(scope: PRIVATE, maxAge: 7) } type Owner { name: String }`,
    resolvers: {
      Query: { droids: () => [1, 2] },
      Droid: {
        owner: (source: number, _args: unknown, _context: unknown, info: CacheControlInfo) => {
          if (source === 1) info.cacheControl.setCacheHint({ maxAge: 50, scope: 'PUBLIC' });
          return { name: 'Luke' };
        },
      },
    },
    query: '{ droids { owner { name } } }',
    expected: 'private, max-age=7',
  },
  {
    rule: 'the hint of the schema does not apply if all calls set another',
    schema: `type Query { droids: [Droid] @cacheControl(maxAge: 100) } type Droid { owner: Owner } type Owner { name: String }`,
    resolvers: {
      Query: { droids: () => [1, 2] },
      Droid: { owner: hinting({ maxAge: 50 }, { name: 'Luke' }) },
    },
    query: '{ droids { owner { name } } }',
    expected: 'public, max-age=50',
  },
  {
    rule: 'the hint of the schema applies to a field that no value reached',
    schema: `type Query { droids: [Droid] @cacheControl(maxAge: 100) } type Droid { owner: Owner } type Owner { name: String }`,
    resolvers: { Query: { droids: () => [] }, Droid: { owner: hinting({ maxAge: 50 }, { name: 'Luke' }) } },
    query: '{ droids { owner { name } } }',
    expected: 'no-store',
  },
  {
    rule: 'aliases of a root field are separate calls',
    schema: 'type Query { a(hint: Int): Int }',
    resolvers: {
      Query: {
        a: (_source: unknown, { hint }: { hint?: number }, _context: unknown, info: CacheControlInfo) => {
          if (hint !== undefined) info.cacheControl.setCacheHint({ maxAge: hint });
        },
      },
    },
    query: '{ x: a(hint: 30) y: a(hint: 20) }',
    expected: 'public, max-age=20',
  },
  {
    rule: 'an alias of a root field without a hint keeps the default',
    schema: 'type Query { a(hint: Int): Int }',
    resolvers: {
      Query: {
        a: (_source: unknown, { hint }: { hint?: number }, _context: unknown, info: CacheControlInfo) => {
          if (hint !== undefined) info.cacheControl.setCacheHint({ maxAge: hint });
        },
      },
    },
    query: '{ x: a(hint: 30) y: a }',
    expected: 'no-store',
  },
  {
    rule: 'methods of values set hints',
    schema: `type Query { droid: Droid @cacheControl(maxAge: 100) } type Droid { owner: Owner name: String @cacheControl(maxAge: 80) } type Owner { name: String }`,
    resolvers: {
      Query: {
        droid: () => ({
          owner: (_args: unknown, _context: unknown, info: CacheControlInfo) => {
            info.cacheControl.setCacheHint({ maxAge: 40 });
            return { name: 'Luke' };
          },
          name: (_args: unknown, _context: unknown, info: CacheControlInfo) => {
            info.cacheControl.setCacheHint({ maxAge: 90 });
            return 'R2';
          },
        }),
      },
    },
    query: '{ droid { name owner { name } } }',
    expected: 'public, max-age=40',
  },
  {
    rule: 'a method of one value does not replace the hint of a property of another',
    schema: `type Query { droids: [Droid] @cacheControl(maxAge: 100) } type Droid { owner: Owner @cacheControl(scope: PRIVATE) } type Owner @cacheControl(maxAge: 9) { name: String }`,
    resolvers: {
      Query: {
        droids: () => [
          {
            owner: (_args: unknown, _context: unknown, info: CacheControlInfo) => {
              info.cacheControl.setCacheHint({ maxAge: 40, scope: 'PUBLIC' });
              return { name: 'Luke' };
            },
          },
          { owner: { name: 'Leia' } },
        ],
      },
    },
    query: '{ droids { owner { name } } }',
    expected: 'private, max-age=9',
  },
  {
    rule: 'asynchronous resolvers set hints after an await',
    schema: `type Query { droid: Droid } type Droid { owner: Owner } type Owner { name: String }`,
    resolvers: {
      Query: {
        droid: async (_source: unknown, _args: unknown, _context: unknown, info: CacheControlInfo) => {
          await new Promise((resolve) => setImmediate(resolve));
          info.cacheControl.setCacheHint({ maxAge: 100 });
          return {};
        },
      },
      Droid: {
        owner: async (_source: unknown, _args: unknown, _context: unknown, info: CacheControlInfo) => {
          await new Promise((resolve) => setTimeout(resolve, 5));
          info.cacheControl.setCacheHint({ maxAge: 30, scope: 'PRIVATE' });
          return { name: 'Luke' };
        },
      },
    },
    query: '{ droid { owner { name } } }',
    expected: 'private, max-age=30',
  },
  {
    rule: 'resolveType functions set hints',
    schema: 'type Query { droid: Being } union Being = Droid type Droid { name: String! }',
    resolvers: {
      Query: { droid: () => ({ name: 'R2' }) },
      Being: {
        __resolveType: (_value: unknown, _context: unknown, info: CacheControlInfo) => {
          info.cacheControl.setCacheHint({ maxAge: 33 });
          return 'Droid';
        },
      },
    },
    query: '{ droid { ... on Droid { name } } }',
    expected: 'public, max-age=33',
  },
  {
    rule: 'fractions of seconds are rounded down',
    schema: 'type Query { droid: Int }',
    resolvers: { Query: { droid: hinting({ maxAge: 1.9 }, 1) } },
    query: '{ droid }',
    expected: 'public, max-age=1',
  },
  {
    rule: 'the longest lifetime is that of HTTP',
    schema: 'type Query { droid: Int }',
    resolvers: { Query: { droid: hinting({ maxAge: 1e300 }, 1) } },
    query: '{ droid }',
    expected: 'public, max-age=2147483648',
  },
  {
    rule: 'less than a second is not cacheable',
    schema: 'type Query { droid: Int }',
    resolvers: { Query: { droid: hinting({ maxAge: 0.9 }, 1) } },
    query: '{ droid }',
    expected: 'no-store',
  },
  {
    rule: 'setCacheHint sets the lifetime of shared caches',
    schema: 'type Query { droid: Int @cacheControl(maxAge: 5, sharedMaxAge: 500) }',
    resolvers: { Query: { droid: hinting({ sharedMaxAge: 50 }, 1) } },
    query: '{ droid }',
    expected: 'public, max-age=5, s-maxage=50',
  },
  {
    rule: 'setCacheHint with maxAge replaces both lifetimes',
    schema: 'type Query { droid: Int @cacheControl(maxAge: 5, sharedMaxAge: 500) }',
    resolvers: { Query: { droid: hinting({ maxAge: 8 }, 1) } },
    query: '{ droid }',
    expected: 'public, max-age=8',
  },
  {
    rule: '@apollo/cache-control-types finds info.cacheControl',
    schema: `type Query { droid: Droid } ${DROID}`,
    resolvers: {
      Query: {
        droid: (_source: unknown, _args: unknown, _context: unknown, info: CacheControlInfo) => {
          cacheControlFromInfo(info).setCacheHint({ maxAge: 60, scope: 'PRIVATE' });
          return { name: 'R2' };
        },
      },
    },
    expected: 'private, max-age=60',
  },
];

describe.each(ENGINES)('with the engine %s', (name, engine) => {
  it.each(RULES)(
    'info.cacheControl: $rule',
    async ({ schema, resolvers, query = '{ droid { name } }', expected }) => {
      const app = appOf(schemaOf(schema, resolvers), { engine });
      for (let i = 0; i < 3; i++) expect(await cacheControlOf(app, query)).toBe(expected);
    },
  );

  it('info.cacheControl of parallel executions does not mix', async () => {
    const schema = schemaOf('type Query { a(age: Int!): Int b: Int @cacheControl(maxAge: 1000) }', {
      Query: {
        a: async (_source: unknown, { age }: { age: number }, _context: unknown, info: CacheControlInfo) => {
          await new Promise((resolve) => setTimeout(resolve, age % 7));
          info.cacheControl.setCacheHint({ maxAge: age, scope: age % 2 === 0 ? 'PUBLIC' : 'PRIVATE' });
          return age;
        },
      },
    });
    const app = appOf(schema, { engine });
    const query = 'query ($age: Int!) { a(age: $age) b }';
    const server = createServer(app);
    const { port } = await listen(server);
    const ages = Array.from({ length: 60 }, (_, index) => index + 1);
    const headers = await Promise.all(
      ages.map(async (age) => {
        const parameters = new URLSearchParams({ query, variables: JSON.stringify({ age }) });
        const response = await fetch(`http://127.0.0.1:${port}/graphql?${parameters}`);
        return response.headers.get('cache-control');
      }),
    );
    server.close();
    expect(headers).toEqual(ages.map((age) => `${age % 2 === 0 ? 'public' : 'private'}, max-age=${age}`));
  });

  it.each([
    { maxAge: -1 },
    { maxAge: Number.NaN },
    { maxAge: '60' },
    { scope: 'private' },
    { vary: 'Cookie' },
    60,
  ])('info.cacheControl.setCacheHint throws for %j', async (hint) => {
    const reported: unknown[] = [];
    const resolvers = {
      Query: { a: using(({ setCacheHint }) => Reflect.apply(setCacheHint, undefined, [hint]), 1) },
    };
    const schema = schemaOf('type Query { a: Int @cacheControl(maxAge: 60) }', resolvers);
    const app = appOf(schema, { engine, onError: (error) => reported.push(error) });
    const { headers } = await get(app, '{ a }').expect(200);
    expect(headers['cache-control']).toBe('no-store');
    expect(reported).toEqual([expect.objectContaining({ code: 'ERR_OPTION' })]);
  });

  it('info.cacheControl exists in mutations, and in operations over sockets', async () => {
    const resolve = hinting({ maxAge: 60 }, 'done');
    const schema = schemaOf(
      'type Query { a: String } type Mutation { a: String } type Subscription { a: String }',
      {
        Query: { a: resolve },
        Mutation: { a: resolve },
        Subscription: {
          a: {
            async *subscribe() {
              yield {};
            },
            resolve,
          },
        },
      },
    );
    const handler = graphqlHTTP(schema, { httpCache: true, engine });
    const server = createServer(handler);
    const { port } = await listen(server);
    const subscriptions = attachSubscriptions(server, handler);
    await request(server)
      .post('/graphql')
      .send({ query: 'mutation { a }' })
      .expect(200, { data: { a: 'done' } })
      .expect('cache-control', 'no-store');
    const client = createClient({ url: `ws://127.0.0.1:${port}/graphql`, webSocketImpl: WebSocket });
    for (const query of ['{ a }', 'mutation { a }', 'subscription { a }']) {
      for await (const result of client.iterate({ query })) expect(result).toEqual({ data: { a: 'done' } });
    }
    await client.dispose();
    await subscriptions.close({ drain: 0 });
  });

  it('info has the same members as without cacheControl, the signal and cacheControl', async () => {
    const keys: string[][] = [];
    const schema = schemaOf('type Query { a: Int }', {
      Query: {
        a: (_source: unknown, _args: unknown, _context: unknown, info: object) =>
          void keys.push(Object.keys({ ...info })),
      },
    });
    await get(appOf(schema, { engine }), '{ a }').expect(200);
    await get(appOf(schema, { engine, httpCache: false }), '{ a }').expect(200);
    expect(new Set(keys[0])).toEqual(new Set([...(keys[1] as string[]), 'getAbortSignal', 'cacheControl']));
    expect(name).toBeDefined();
  });
});

describe('functions of the option engine', () => {
  const schema = (): GraphQLSchema =>
    schemaOf(
      'type Query { a: Int @cacheControl(maxAge: 60) b: B @cacheControl(maxAge: 60) } type B { c: Int }',
      {
        Query: { a: using(({ cacheHint }) => cacheHint.restrict({ scope: 'PRIVATE' }), 1), b: () => ({}) },
        B: { c: using(({ cacheHint }) => cacheHint.restrict({ scope: 'PRIVATE' }), 1) },
      },
    );
  const headerWith = async (engine: GraphQLOptions['engine'], query = '{ a }'): Promise<string | undefined> =>
    cacheControlOf(appOf(schema(), { engine }), query);

  it('cacheControl knows the hints of an engine that starts later', async () => {
    expect(
      await headerWith(async (args: ExecutionArgs) => {
        await new Promise((resolve) => setImmediate(resolve));
        return execute(args);
      }),
    ).toBe('private, max-age=60');
  });

  it('cacheControl does not cache results of an engine that uses another schema', async () => {
    const other = schema();
    for (const field of Object.values(other.getQueryType()?.getFields() ?? {})) field.resolve = () => 1;
    expect(await headerWith((args: ExecutionArgs) => execute({ ...args, schema: other }))).toBe('no-store');
    expect(await headerWith(() => ({ data: { a: 1 } }))).toBe('no-store');
  });

  it('cacheControl knows the hints of an engine that resolves nested fields later', async () => {
    expect(await headerWith((args: ExecutionArgs) => execute(args), '{ b { c } }')).toBe(
      'private, max-age=60',
    );
  });

  it('tracers may wrap the resolvers of the schema that the engine gets', async () => {
    const names: string[] = [];
    const wrapping = (args: ExecutionArgs): ReturnType<typeof execute> => {
      for (const field of Object.values(args.schema.getQueryType()?.getFields() ?? {})) {
        const { resolve } = field;
        if (resolve === undefined || names.includes(field.name)) continue;
        field.resolve = (...call) => {
          names.push(field.name);
          return resolve(...call);
        };
      }
      return execute(args);
    };
    expect(await headerWith(wrapping)).toBe('private, max-age=60');
    expect(names).toContain('a');
  });
});
