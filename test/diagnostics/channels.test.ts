import { execFileSync } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { buildSchema } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';

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

describe('openapi()', () => {
  const folder = mkdtempSync(join(tmpdir(), 'openapi-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const validator = resolve(
    __dirname,
    '../../node_modules/@seriousme/openapi-schema-validator/bin/validate-api-cli.js',
  );
  const describeAt = (path: string, options?: GraphQLOptions) => {
    const { paths, components } = graphqlHTTP(schema, options).openapi(path);
    return { openapi: '3.1.0', info: { title: 'Test', version: '1.0.0' }, paths, components };
  };

  it.each([
    ['the defaults', {}],
    ['everything', { batching: true, statusCodes: '2026', inflate: true }],
    ['little', { methods: ['POST'], multipartUploadsEnabled: false, graphiql: false, getMutations: false }],
  ] as [string, GraphQLOptions][])('openapi() returns valid OpenAPI 3.1 with %s', (_name, options) => {
    const file = join(folder, 'openapi.json');
    writeFileSync(file, JSON.stringify(describeAt('/graphql', options)));
    expect(execFileSync(process.execPath, [validator, file], { encoding: 'utf8' })).toMatch(/"valid": true/);
  });

  it('openapi() describes the route with the current options', () => {
    const all = describeAt('/api', {}).paths['/api'] as Record<
      string,
      { requestBody?: { content: object }; responses: Record<string, { content?: object }> }
    >;
    expect(Object.keys(all)).toEqual(['get', 'post', 'head']);
    expect(Object.keys(all['post']?.requestBody?.content ?? {})).toEqual([
      'application/json',
      'multipart/form-data',
    ]);
    expect(Object.keys(all['get']?.responses['200']?.content ?? {})).toContain('text/html');
    const few = describeAt('/api', {
      methods: ['POST'],
      multipartUploadsEnabled: false,
      statusCodes: '2026',
    }).paths['/api'] as typeof all;
    expect(Object.keys(few)).toEqual(['post']);
    expect(Object.keys(few['post']?.requestBody?.content ?? {})).toEqual(['application/json']);
    expect(Object.keys(few['post']?.responses ?? {})).toEqual(expect.arrayContaining(['200', '294', '422']));
  });
});
