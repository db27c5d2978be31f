/** @tags node graphql engine */
import { createServer, type Server } from 'node:http';
import { buildSchema, type GraphQLSchema } from 'graphql';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { listen } from '../kit.ts';

const MODES = { modes: ['PROPAGATE', 'NULL', 'HALT'] } as const;

const schema = buildSchema(`
  type Query { user: User, strict: User!, users: [User!]!, node: Node, calm: String }
  type Mutation { first: String, second: String! , third: String }
  type Subscription { users: User }
  interface Node { id: ID! }
  type User implements Node { id: ID!, name: String!, email: String, friend: User! }
`);

const calls: string[] = [];
const fail = (name: string): never => {
  throw new Error(`${name} failed`);
};
const user = (id: string) => ({
  __typename: 'User',
  id,
  name: () => fail('name'),
  email: async () => fail('email'),
  friend: () => ({ __typename: 'User', id: `${id}f`, name: 'Ann' }),
});
const rootValue = {
  user: () => user('1'),
  strict: async () => user('2'),
  users: () => [user('3'), { __typename: 'User', id: '4', name: 'Bo' }],
  node: () => user('5'),
  calm: () => 'calm',
  first: () => {
    calls.push('first');
    return fail('first');
  },
  second: () => {
    calls.push('second');
    return 'done';
  },
  third: () => {
    calls.push('third');
    return 'done';
  },
};

let server: Server;
let url: string;

async function serve(options: GraphQLOptions, source: GraphQLSchema = schema): Promise<void> {
  const handler = graphqlHTTP(source, { rootValue, onError: false, engine: 'compiled', ...options });
  server = createServer((req, res) => void handler(req, res));
  attachSubscriptions(server, handler);
  ({ url } = await listen(server, '/graphql'));
}

afterEach(async () => {
  calls.length = 0;
});

interface Result {
  readonly data?: unknown;
  readonly errors?: readonly { message: string; path?: unknown; coordinate?: string }[];
}

async function post(body: object): Promise<{ status: number; result: Result }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/graphql-response+json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, result: (await response.json()) as Result };
}

const pathsOf = ({ errors = [] }: Result): unknown => errors.map(({ path }) => path);

describe('a request with onError', () => {
  it('PROPAGATE sets the parent of a failed non-null field to null, as a request without it does', async () => {
    await serve({ errors: MODES });
    const query = '{ user { id name } calm }';
    const without = await post({ query });
    const propagated = await post({ query, onError: 'PROPAGATE' });
    expect(propagated).toEqual(without);
    expect(propagated.result.data).toEqual({ user: null, calm: 'calm' });
  });

  it('NULL sets only the failed fields to null, however deep and in lists', async () => {
    await serve({ errors: MODES });
    const query =
      '{ user { id name email friend { name friend { id } } } users { id name } strict { name } }';
    const { status, result } = await post({ query, onError: 'NULL' });
    expect(status).toBe(200);
    expect(result.data).toEqual({
      user: { id: '1', name: null, email: null, friend: { name: 'Ann', friend: null } },
      users: [
        { id: '3', name: null },
        { id: '4', name: 'Bo' },
      ],
      strict: { name: null },
    });
    expect(pathsOf(result)).toEqual(
      expect.arrayContaining([
        ['user', 'name'],
        ['user', 'email'],
        ['user', 'friend', 'friend'],
        ['users', 0, 'name'],
        ['strict', 'name'],
      ]),
    );
    expect(result.errors).toHaveLength(5);
  });

  it('HALT returns no data and the first error', async () => {
    await serve({ errors: MODES });
    const { result } = await post({ query: '{ calm user { email } strict { name } }', onError: 'HALT' });
    expect(result.data).toBeNull();
    expect(result.errors).toHaveLength(1);
  });

  it('HALT accepts a null that is no error', async () => {
    await serve({ errors: MODES, rootValue: { user: null, calm: 'calm' } });
    const { result } = await post({ query: '{ user { id } calm }', onError: 'HALT' });
    expect(result).toEqual({ data: { user: null, calm: 'calm' } });
  });

  it('HALT executes no further field of a mutation', async () => {
    await serve({ errors: MODES });
    await post({ query: 'mutation { first second third }', onError: 'HALT' });
    expect(calls).toEqual(['first']);
    await post({ query: 'mutation { first second third }', onError: 'NULL' });
    expect(calls).toEqual(['first', 'first', 'second', 'third']);
  });

  it('is a request error for a value that the server does not offer', async () => {
    await serve({ errors: { modes: ['NULL'] } });
    for (const onError of ['HALT', 'null', 1, {}]) {
      const { status, result } = await post({ query: '{ calm }', onError });
      expect(status).toBe(400);
      expect(result.errors?.[0]?.message).toBe('The parameter "onError" must be one of NULL');
      expect('data' in result).toBe(false);
    }
  });

  it('is ignored without the option errors.modes', async () => {
    await serve({});
    const { status, result } = await post({ query: '{ user { name } }', onError: 'anything' });
    expect(status).toBe(200);
    expect(result.data).toEqual({ user: null });
  });

  it('may be a parameter of a GET, and differ between the operations of a batch', async () => {
    await serve({ errors: MODES, batching: true });
    const search = new URLSearchParams({ query: '{ user { id name } }', onError: 'NULL' });
    const got = (await (await fetch(`${url}?${search}`)).json()) as Result;
    expect(got.data).toEqual({ user: { id: '1', name: null } });
    const query = '{ user { id name } }';
    const batch = [{ query }, { query, onError: 'NULL' }, { query, onError: 'HALT' }];
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(batch),
    });
    const results = (await response.json()) as Result[];
    expect(results.map(({ data }) => data)).toEqual([
      { user: null },
      { user: { id: '1', name: null } },
      null,
    ]);
  });

  it('works for trusted documents by id, and for every operation of a document', async () => {
    const from = { users: 'query A { user { name } } query B { user { id name } }' };
    await serve({ errors: MODES, documents: { from, only: true } });
    const ask = async (operationName: string, onError?: string): Promise<unknown> =>
      (await post({ documentId: 'users', operationName, onError })).result.data;
    expect(await ask('B', 'NULL')).toEqual({ user: { id: '1', name: null } });
    expect(await ask('A', 'NULL')).toEqual({ user: { name: null } });
    expect(await ask('A')).toEqual({ user: null });
  });

  it('a trusted document may fix its mode, which must be one of the option', async () => {
    const reports: string[] = [];
    const operation = { id: 'b', body: '{ user { id name } }' };
    const documents = {
      from: {
        format: 'apollo-persisted-query-manifest' as const,
        version: 1 as const,
        operations: [
          { id: 'a', body: '{ user { name } }', onError: 'NULL' as const },
          operation,
          { id: 'c', body: '{ user { name id } }', onError: 'HALT' as const },
        ],
      },
    };
    const onError = (error: unknown) => void reports.push(String(error));
    await serve({ errors: { modes: ['PROPAGATE', 'NULL'] }, documents, onError });
    const ask = async (documentId: string, mode?: string): Promise<unknown> =>
      (await post({ documentId, onError: mode })).result.data;
    expect([await ask('a'), await ask('a', 'PROPAGATE')]).toEqual([
      { user: { name: null } },
      { user: { name: null } },
    ]);
    expect([await ask('b'), await ask('b', 'NULL')]).toEqual([
      { user: null },
      { user: { id: '1', name: null } },
    ]);
    expect(await ask('c')).toBeUndefined();
    expect(reports[0]).toContain(
      'c: Its "onError" is "HALT", which the option "errors.modes" does not have.',
    );
  });

  it('works over a WebSocket', async () => {
    await serve({ errors: MODES });
    const client = createClient({
      url: url.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      retryAttempts: 0,
    });
    const results: unknown[] = [];
    const payload = { query: '{ user { id name } }', onError: 'NULL' };
    await new Promise<void>((resolve, reject) => {
      client.subscribe(payload, {
        next: (result) => results.push(result.data),
        error: reject,
        complete: resolve,
      });
    });
    await client.dispose();
    expect(results).toEqual([{ user: { id: '1', name: null } }]);
  });

  it('has entries of its own in the response cache', async () => {
    const cached = buildSchema(`
      directive @cacheControl(maxAge: Int) on FIELD_DEFINITION
      type Query { calm: String @cacheControl(maxAge: 60) }
    `);
    let count = 0;
    const counting = { calm: () => String(++count) };
    await serve({ errors: MODES, rootValue: counting, responseCache: {} }, cached);
    const ask = async (onError?: string): Promise<unknown> =>
      (await post({ query: '{ calm }', onError })).result.data;
    expect(await ask()).toEqual({ calm: '1' });
    expect(await ask('NULL')).toEqual({ calm: '2' });
    expect(await ask('HALT')).toEqual({ calm: '3' });
    expect(await ask('NULL')).toEqual({ calm: '2' });
    expect(await ask('PROPAGATE')).toEqual({ calm: '1' });
  });

  it('NULL holds for more combinations of @include than the engine keeps', async () => {
    await serve({ errors: MODES });
    const names = Array.from({ length: 8 }, (_, index) => `v${index}`);
    const fields = names.map((name) => `${name}: calm @include(if: $${name})`).join(' ');
    const query = `query(${names.map((name) => `$${name}: Boolean!`).join(' ')}) { ${fields} user { id name } }`;
    for (let bits = 0; bits < 80; bits++) {
      const variables = Object.fromEntries(names.map((name, index) => [name, (bits & (1 << index)) !== 0]));
      const { result } = await post({ query, variables, onError: 'NULL' });
      expect(result.data).toMatchObject({ user: { id: '1', name: null } });
    }
  });
});

describe('the option errors', () => {
  it('coordinate adds the coordinate of the field to its errors, masked or not', async () => {
    await serve({ errors: { ...MODES, coordinate: true } });
    const query = '{ user { email } node { id ... on User { name } } }';
    const { result } = await post({ query, onError: 'NULL' });
    const found = result.errors?.map(({ message, coordinate }) => [message, coordinate]);
    expect(found).toEqual(
      expect.arrayContaining([
        ['Internal server error', 'User.name'],
        ['Internal server error', 'User.email'],
      ]),
    );
    const invalid = await post({ query: '{ nothing }' });
    expect(invalid.result.errors?.[0]).not.toHaveProperty('coordinate');
  });

  it('coordinate works with the engine graphql-js', async () => {
    await serve({ engine: 'graphql-js', errors: { coordinate: true } });
    const { result } = await post({ query: '{ user { ...Mail } } fragment Mail on User { email }' });
    expect(result.errors?.[0]).toMatchObject({ coordinate: 'User.email', path: ['user', 'email'] });
  });

  it.each([
    [{ modes: ['null'] }, 'errors.modes'],
    [{ modes: 'NULL' }, 'errors.modes'],
    [{ mode: [] }, 'errors.mode'],
    [{ coordinate: 1 }, 'errors.coordinate'],
  ])('%j is a mistake that is found at once', (errors, name) => {
    const create = () => graphqlHTTP(schema, { errors } as unknown as GraphQLOptions);
    expect(create).toThrow(
      expect.objectContaining({ code: 'ERR_OPTION', message: expect.stringContaining(name) }),
    );
  });

  it('modes cannot be combined with a function as engine', () => {
    const create = () => graphqlHTTP(schema, { errors: MODES, engine: () => ({ data: {} }) });
    expect(create).toThrow(expect.objectContaining({ code: 'ERR_OPTION' }));
  });
});
