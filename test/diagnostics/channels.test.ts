/** @tags node graphql */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer } from 'node:http';
import { buildSchema } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';

const schema = buildSchema('type Query { hello: String secret: String }');
const rootValue = {
  hello: 'world',
  secret: () => {
    throw new Error('hunter2');
  },
};
const NAMES = ['request', 'parse', 'validate', 'execute', 'response'];

describe('the diagnostics channels', () => {
  const received: [string, Record<string, unknown>][] = [];
  const listeners = NAMES.map(
    (name) =>
      [
        `espalier:graphql:${name}`,
        (message: unknown) => received.push([name, message as Record<string, unknown>]),
      ] as const,
  );
  beforeEach(() => {
    received.splice(0);
    for (const [name, listener] of listeners) subscribe(name, listener);
  });
  afterEach(() => {
    for (const [name, listener] of listeners) unsubscribe(name, listener);
  });

  it('the diagnostics channels report each phase once and in order, and parsing only the first time', async () => {
    const app = createServer(graphqlHTTP(schema, { rootValue }));
    const sendRequest = () => request(app).post('/').send({ query: '{ hello secret }' });
    await sendRequest();
    expect(received.map(([name]) => name)).toEqual(NAMES);
    const [, parse, validate, execute, response] = received.map(([, message]) => message);
    expect(parse).toMatchObject({ source: '{ hello secret }', errors: [], duration: expect.any(Number) });
    expect(validate).toMatchObject({
      document: { kind: 'Document' },
      errors: [],
      duration: expect.any(Number),
    });
    expect(execute).toMatchObject({
      operation: { source: '{ hello secret }' },
      outcome: { kind: 'partial' },
      duration: expect.any(Number),
    });
    expect(response).toMatchObject({
      status: 200,
      errors: [{ message: 'hunter2' }],
      duration: expect.any(Number),
    });
    received.splice(0);
    await sendRequest();
    expect(received.map(([name]) => name)).toEqual(['request', 'execute', 'response']);
  });

  it('the diagnostics channels report why a request was refused', async () => {
    const app = createServer(graphqlHTTP(schema, { rootValue }));
    await request(app).post('/').send({ query: '{' });
    await request(app).post('/').set('content-type', 'text/plain').send('x');
    await request(app).post('/').send({ query: '{ nope }' });
    expect(
      received
        .filter(([name]) => name === 'response')
        .map(([, { status, errors }]) => [status, (errors as Error[])[0]?.message]),
    ).toEqual([
      [200, expect.stringMatching(/Syntax Error/)],
      [415, expect.stringMatching(/Content-Type/)],
      [200, expect.stringMatching(/nope/)],
    ]);
  });
});
