/** @tags node graphql engine */
import { buildSchema } from 'graphql';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { listen } from '../kit.ts';

const schema = buildSchema(`
  type Query { add(a: Int!, b: Int = 1): Int, slow(name: String!): String, fail: String }
  type Mutation { save(id: ID!): ID }
`);

interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

function gate(): Gate {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

const gates = new Map<string, Gate>();
const saved: string[] = [];
const rootValue = {
  add: ({ a, b }: { a: number; b: number }) => a + b,
  slow: async ({ name }: { name: string }) => {
    await gates.get(name)?.opened;
    return name;
  },
  fail: () => {
    throw new Error('secret');
  },
  save: ({ id }: { id: string }) => {
    saved.push(id);
    return id;
  },
};

let url: string;

async function serve(options: GraphQLOptions = {}): Promise<void> {
  const handler = graphqlHTTP(schema, { rootValue, batching: true, onError: false, ...options });
  ({ url } = await listen((req, res) => void handler(req, res), '/graphql'));
}

afterEach(async () => {
  gates.clear();
  saved.length = 0;
});

function post(body: unknown, accept = 'application/json'): Promise<Response> {
  const headers = { 'content-type': 'application/json', accept };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
}

const linesOf = (text: string): unknown[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

const ADD = 'query ($a: Int!, $b: Int) { add(a: $a, b: $b) }';

describe('a request with a list of variables', () => {
  it('executes one document once for each, and returns the results in order', async () => {
    await serve();
    const response = await post({ query: ADD, variables: [{ a: 1 }, { a: 2, b: 5 }, {}] });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual([
      { variableIndex: 0, data: { add: 2 } },
      { variableIndex: 1, data: { add: 7 } },
      { variableIndex: 2, errors: [expect.objectContaining({ extensions: { code: 'BAD_USER_INPUT' } })] },
    ]);
  });

  it('may be part of a list of requests', async () => {
    await serve();
    const query = '{ add(a: 1) }';
    const response = await post([{ query: ADD, variables: [{ a: 1 }, { a: 2 }] }, { query }]);
    expect(await response.json()).toEqual([
      { requestIndex: 0, variableIndex: 0, data: { add: 2 } },
      { requestIndex: 0, variableIndex: 1, data: { add: 3 } },
      { requestIndex: 1, data: { add: 2 } },
    ]);
  });

  it('gets JSON lines as the results finish', async () => {
    await serve();
    for (const name of ['first', 'last']) gates.set(name, gate());
    const variables = [{ name: 'last' }, { name: 'first' }];
    const query = 'query ($name: String!) { slow(name: $name) }';
    // The head arrives with the first line.
    gates.get('first')?.open();
    const response = await post({ query, variables }, 'application/jsonl, application/json');
    expect(response.headers.get('content-type')).toBe('application/jsonl; charset=utf-8');
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const { value } = await reader.read();
    expect(linesOf(Buffer.from(value as Uint8Array).toString())).toEqual([
      { variableIndex: 1, data: { slow: 'first' } },
    ]);
    gates.get('last')?.open();
    const rest = await reader.read();
    expect(linesOf(Buffer.from(rest.value as Uint8Array).toString())).toEqual([
      { variableIndex: 0, data: { slow: 'last' } },
    ]);
    expect((await reader.read()).done).toBe(true);
  });

  it('gets JSON lines with masked errors, and the place of each request', async () => {
    await serve();
    const batch = [{ query: '{ fail }' }, { query: ADD, variables: [{ a: 3 }] }, { query: '{ nothing }' }];
    const text = await (await post(batch, 'application/jsonl')).text();
    expect(text).toContain('"message":"Internal server error"');
    expect(linesOf(text)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ requestIndex: 0, data: { fail: null } }),
        { requestIndex: 1, variableIndex: 0, data: { add: 4 } },
        expect.objectContaining({ requestIndex: 2, errors: [expect.anything()] }),
      ]),
    );
  });

  it('shares the limits of one operation, and the number of batching counts every execution', async () => {
    await serve({ batching: 3 });
    const variables = [{ a: 1 }, { a: 2 }];
    const tooMany = await post([
      { query: ADD, variables },
      { query: ADD, variables },
    ]);
    expect(tooMany.status).toBe(413);
    const one = await post({ query: ADD, variables: [{ a: 1 }, { a: 1 }, { a: 1 }, { a: 1 }] });
    expect(one.status).toBe(413);
  });

  it('has the limits of one operation for all executions', async () => {
    await serve({ limits: { rootFields: 2 } });
    expect((await post({ query: '{ add(a: 1) }', variables: [{}, {}] })).status).toBe(200);
    const response = await post({ query: '{ add(a: 1) }', variables: [{}, {}, {}] });
    const results = (await response.json()) as { errors?: unknown }[];
    expect(results.map(({ errors }) => errors === undefined)).toEqual([true, true, false]);
  });

  it.each([
    [[], 'The list "variables" is empty'],
    [[null], 'Each item of the list "variables" must be an object'],
    [[{ a: 1 }, [1]], 'Each item of the list "variables" must be an object'],
    [[1], 'Each item of the list "variables" must be an object'],
  ])('is refused for %j', async (variables, message) => {
    await serve();
    const response = await post({ query: ADD, variables });
    expect(response.status).toBe(400);
    const { errors } = (await response.json()) as { errors: { message: string }[] };
    expect(errors[0]?.message).toContain(message);
  });

  it('is refused without the option batching', async () => {
    await serve({ batching: false });
    const response = await post({ query: ADD, variables: [{ a: 1 }] });
    expect(response.status).toBe(400);
  });

  it('is refused together with files', async () => {
    await serve({ uploads: {} });
    const form = new FormData();
    form.set('operations', JSON.stringify({ query: ADD, variables: [{ a: 1 }] }));
    form.set('map', '{}');
    const headers = { 'apollo-require-preflight': 'true' };
    const response = await fetch(url, { method: 'POST', headers, body: form });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('not a list');
  });

  it('executes mutations, each with its own variables', async () => {
    await serve();
    const query = 'mutation ($id: ID!) { save(id: $id) }';
    await post({ query, variables: [{ id: '1' }, { id: '2' }] });
    expect(saved.sort()).toEqual(['1', '2']);
  });

  it('works for documents by id', async () => {
    await serve({ documents: { from: { add: ADD }, only: true } });
    const response = await post({ documentId: 'add', variables: [{ a: 1 }, { a: 2 }] });
    expect(await response.json()).toEqual([
      { variableIndex: 0, data: { add: 2 } },
      { variableIndex: 1, data: { add: 3 } },
    ]);
  });

  it('leaves plain batches of other clients as they are', async () => {
    await serve();
    const response = await post([{ query: '{ add(a: 1) }' }, { query: ADD, variables: { a: 2 } }]);
    expect(await response.json()).toEqual([{ data: { add: 2 } }, { data: { add: 3 } }]);
  });

  it('a client that leaves during JSON lines ends the batch without an unhandled rejection', async () => {
    await serve();
    gates.set('never', gate());
    const controller = new AbortController();
    const body = JSON.stringify({
      query: 'query ($name: String!) { slow(name: $name) }',
      variables: [{ name: 'now' }, { name: 'never' }],
    });
    const headers = { 'content-type': 'application/json', accept: 'application/jsonl' };
    const response = await fetch(url, { method: 'POST', headers, body, signal: controller.signal });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    controller.abort();
    await expect(reader.read()).rejects.toThrow();
    gates.get('never')?.open();
    expect((await post({ query: '{ add(a: 1) }' })).status).toBe(200);
  });
});
