/** @tags graphql engine */
import { makeExecutableSchema } from '@graphql-tools/schema';
import DataLoader from 'dataloader';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { inject } from '../../middleware/testing.ts';

const NODE_ENV = process.env['NODE_ENV'];

let warnings: string[] = [];
let schemas = 0;

/** Like a query: its promise settles in a callback of the event loop. */
const query = async (value: string): Promise<string> => {
  await new Promise(setImmediate);
  return value;
};

interface Context {
  readonly loader: DataLoader<string, string>;
}
type Resolve = (id: string, args: object, context: Context) => unknown;

/** Executes a query for a field of the items of a list with an own type. Returns the name of the type. */
async function load(
  name: Resolve | object,
  { count = 12, ...options }: GraphQLOptions & { count?: number } = {},
): Promise<string> {
  const type = `Item${++schemas}`;
  const schema = makeExecutableSchema({
    typeDefs: `type Query { items: [${type}] } type ${type} { name: String }`,
    resolvers: {
      Query: { items: () => Array.from({ length: count }, (_, index) => `${index}`) },
      [type]: { name },
    },
  });
  const context = (): Context => ({
    loader: new DataLoader((ids) => Promise.all([query('one query')]).then(() => ids as string[])),
  });
  const handler = graphqlHTTP(schema, { context, ...options });
  for (let times = 0; times < 2; times++) {
    const { data, errors } = await inject(handler, { query: '{ items { name } }' });
    expect(errors).toBeUndefined();
    expect(data).toEqual({ items: Array.from({ length: count }, (_, index) => ({ name: `${index}` })) });
  }
  return type;
}

beforeEach(() => {
  warnings = [];
  jest.spyOn(console, 'warn').mockImplementation((text: string) => void warnings.push(text));
});

afterEach(() => {
  process.env['NODE_ENV'] = NODE_ENV;
  jest.restoreAllMocks();
});

const THEN = 'then';

describe.each(['compiled', 'graphql-js'] as const)('the warning about N+1 in the engine %s', (engine) => {
  it.each<[string, Resolve]>([
    ['promises', (id) => query(id)],
    [
      'query builders',
      (id) => ({ [THEN]: (...on: Parameters<Promise<unknown>['then']>) => query(id).then(...on) }),
    ],
  ])('names a resolver once whose %s settle one by one', async (_what, resolve) => {
    const type = await load(resolve, { engine });
    expect(warnings).toEqual([expect.stringContaining(`The resolver of ${type}.name was called 12 times`)]);
    expect(warnings[0]).toContain('use resolveMany or DataLoader');
  });

  it.each<[string, Resolve | object, object?]>([
    ['a DataLoader', (id: string, _args: object, { loader }: Context) => loader.load(id)],
    [
      'several calls of a DataLoader',
      async (id: string, _args: object, { loader }: Context) => {
        await loader.load('another');
        return loader.load(id);
      },
    ],
    ['a batch resolver', { extensions: { resolveMany: (ids: string[]) => Promise.all(ids.map(query)) } }],
    ['promises that need no event', async (id: string) => id],
    ['values', (id: string) => id],
    ['few items', (id: string) => query(id), { count: 9 }],
    ['resolveMany: false', { resolve: (id: string) => query(id), extensions: { resolveMany: false } }],
  ])('is not given for %s', async (_what, name, options = {}) => {
    await load(name, { engine, ...options });
    expect(warnings).toEqual([]);
  });

  it('is not given in production', async () => {
    process.env['NODE_ENV'] = 'production';
    await load((id) => query(id), { engine });
    expect(warnings.filter((text) => !text.includes('these defaults are on'))).toEqual([]);
  });
});
