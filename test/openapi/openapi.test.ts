import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { folder, serve, stopAll } from '../core/by-id-service.ts';

afterEach(stopAll);

const from = {
  hello: 'query Hello { hello }',
  'sha256:abc': `query User($id: ID!, $withRole: Boolean = false) {
    user(id: $id) { ...Fields id: name role @include(if: $withRole) since __typename }
  }
  fragment Fields on User { name }`.replace('id: name', 'alias: name'),
  search:
    'query Search($filter: Filter) { search(filter: $filter) { id ... on Group { members { id } } ... on User { name } } }',
  node: 'query Node($id: ID!) { node(id: $id) { id } }',
  two: 'query One { hello } query Two($a: Int!) { add(a: $a) }',
  other: 'query Hello { add(a: 1) }',
  types: '{ __schema { types { name kind fields { name } } } __type(name: "User") { name } }',
  count: 'mutation { count }',
  'a b/c': '{ hello }',
  unfit: '{ nope }',
};

const validator = resolve(
  __dirname,
  '../../node_modules/@seriousme/openapi-schema-validator/bin/validate-api-cli.js',
);

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly required?: boolean;
    readonly schema?: object;
    readonly content?: { readonly 'application/json': { readonly schema: object } };
  }[];
  readonly responses: Record<string, { readonly content: Record<string, { readonly schema: object }> }>;
}

async function describeApi() {
  const served = await serve({ documents: { from } });
  const { paths, components } = served.handler.openapi('/graphql/');
  const document = { openapi: '3.1.0', info: { title: 'API', version: '1' }, paths, components };
  const file = join(folder(), 'openapi.json');
  writeFileSync(file, JSON.stringify(document));
  expect(execFileSync(process.execPath, [validator, file], { encoding: 'utf8' })).toMatch(/"valid": true/);
  const get = (id: string) => paths[`/graphql/${id}`]?.['get'] as Operation | undefined;
  const ajv = new Ajv2020({ strict: false, formats: { int32: true } });
  ajv.addSchema({ $id: 'api', components: JSON.parse(JSON.stringify(components)) });
  const compile = (schema: object) =>
    ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"api#/components')));
  return { ...served, paths, components, get, compile };
}

describe('handler.openapi with trusted documents', () => {
  it('openapi lists each trusted query as a GET of its path, and no mutation or document that does not fit', async () => {
    const { paths, get } = await describeApi();
    const listed = Object.keys(paths)
      .filter((path) => path !== '/graphql/')
      .sort();
    expect(listed).toEqual(
      ['a%20b%2Fc', 'hello', 'node', 'other', 'search', 'sha256:abc', 'two', 'types'].map(
        (id) => `/graphql/${id}`,
      ),
    );
    const ids = Object.values(paths).flatMap((path) => Object.values(path)) as Operation[];
    expect(new Set(ids.map(({ operationId }) => operationId)).size).toBe(ids.length);
    expect(get('hello')).toMatchObject({
      operationId: 'Hello',
      summary: 'Run the trusted query Hello',
      parameters: [],
    });
  });

  it('openapi describes the variables as a parameter', async () => {
    const { get, components } = await describeApi();
    const [variables] = get('sha256:abc')?.parameters ?? [];
    expect(variables).toMatchObject({ name: 'variables', required: true });
    expect(variables?.content?.['application/json'].schema).toEqual({
      type: 'object',
      properties: {
        id: { type: ['string', 'integer'] },
        withRole: { type: ['boolean', 'null'], default: false },
      },
      required: ['id'],
    });
    const [filter] = get('search')?.parameters ?? [];
    expect(filter?.required).toBe(false);
    expect(components.schemas['Input.Filter']).toEqual({
      type: 'object',
      properties: {
        text: { type: ['string', 'null'] },
        role: { type: ['string', 'null'], enum: ['ADMIN', 'MEMBER', null] },
        and: {
          type: ['array', 'null'],
          items: { $ref: '#/components/schemas/Input.Filter' },
        },
        limit: { type: 'integer', format: 'int32' },
      },
      additionalProperties: false,
    });
    const [operationName] = get('two')?.parameters ?? [];
    expect(operationName).toMatchObject({
      name: 'operationName',
      required: true,
      schema: { enum: ['One', 'Two'] },
    });
  });

  it('openapi describes the selection as the schema of the response, which real responses match', async () => {
    const { url, get, compile } = await describeApi();
    const requests: [id: string, variables?: object | undefined, operationName?: string][] = [
      ['hello'],
      ['sha256:abc', { id: 1 }],
      ['sha256:abc', { id: '1', withRole: true }],
      ['search', { filter: { and: [{ text: 'a' }], role: 'ADMIN' } }],
      ['node', { id: 1 }],
      ['two', { a: 1 }, 'Two'],
      ['two', undefined, 'One'],
      ['other'],
      ['types'],
      ['a%20b%2Fc'],
    ];
    for (const [id, variables, operationName] of requests) {
      const operation = get(id);
      const params = new URLSearchParams();
      if (operationName !== undefined) params.set('operationName', operationName);
      if (variables !== undefined) {
        params.set('variables', JSON.stringify(variables));
        const described = operation?.parameters.find(({ name }) => name === 'variables');
        const isValid = compile(described?.content?.['application/json'].schema ?? { not: {} });
        expect([id, isValid(variables), isValid.errors]).toEqual([id, true, null]);
      }
      const response = await fetch(`${url}/${id}?${params}`);
      const body = await response.json();
      const isValid = compile(
        operation?.responses['200']?.content['application/json']?.schema ?? { not: {} },
      );
      expect([id, response.status, body.errors, isValid(body), isValid.errors]).toEqual([
        id,
        200,
        undefined,
        true,
        null,
      ]);
      // The schema is exact: a response with another field does not match.
      expect(isValid({ data: { ...body.data, more: 1 } })).toBe(false);
    }
    const isUser = compile(get('sha256:abc')?.responses['200']?.content['application/json']?.schema ?? {});
    const user = { name: 'a', alias: 'a', since: 1, __typename: 'User' };
    expect(isUser({ data: { user } })).toBe(true);
    expect(isUser({ data: { user: { ...user, name: 1 } } })).toBe(false);
    expect(isUser({ data: { user: { name: 'a' } } })).toBe(false);
    expect(isUser({ data: { user: null }, errors: [{ message: 'a' }] })).toBe(true);
  });

  it('openapi lists documentId as the first parameter, in the order of the specification', async () => {
    const { paths, components } = await describeApi();
    const operation = paths['/graphql/']?.['get'] as Operation | undefined;
    expect(operation?.parameters.map(({ name }) => name)).toEqual([
      'documentId',
      'query',
      'operationName',
      'variables',
      'extensions',
    ]);
    expect(components.schemas['GraphQLRequest']).toMatchObject({
      anyOf: [{ required: ['query'] }, { required: ['documentId'] }],
    });
  });

  it('openapi lists no trusted query without the option, or if a function finds the documents', async () => {
    for (const documents of [undefined, { apq: true }, { from: () => '{ hello }' }]) {
      const { handler } = await serve({ documents });
      expect(Object.keys(handler.openapi('/graphql').paths)).toEqual(['/graphql']);
    }
  });
});
