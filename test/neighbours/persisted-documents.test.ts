/** @tags once */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client, createRequest, fetchExchange, stringifyDocument } from '@urql/core';
import type { GraphQLOptions } from '../../middleware/graphql.ts';
import { serve, sha256 } from '../core/by-id-service.ts';
import { makeFolder } from '../kit.ts';

jest.setTimeout(120_000);

// The build steps run here, so that they find the packages of this folder.
function project(files: Record<string, string>): string {
  const root = join(__dirname, 'artifacts');
  mkdirSync(root, { recursive: true });
  return makeFolder(files, root);
}

const run = (folder: string, script: string, ...args: string[]) =>
  promisify(execFile)(process.execPath, [join(__dirname, 'node_modules', script), ...args], { cwd: folder });

const SDL = `
  type Query { hello: String, user(id: ID!): User, add(a: Int!, b: Int = 2): Int }
  type User { id: ID!, name: String }
  type Mutation { count: Int }
`;

/** Serves the documents, and keeps the parameters of the requests. */
async function listen(documents: GraphQLOptions['documents']) {
  const requests: Record<string, unknown>[] = [];
  const served = await serve({ documents }, (handler) => (req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const search = new URL(req.url ?? '/', 'http://localhost').searchParams;
      const params = text === '' ? Object.fromEntries(search) : JSON.parse(text);
      requests.push({ method: req.method, ...params });
      handler(Object.assign(req, text === '' ? {} : { body: params }), res);
    });
  });
  return { ...served, requests };
}

describe("Apollo Client's persisted queries", () => {
  it.each([false, true])(
    'PersistedQueryLink registers a query and finds it by hash (GET for hashes: %s)',
    async (useGETForHashedQueries) => {
      const { ApolloClient, gql, HttpLink, InMemoryCache } = await import('@apollo/client/core');
      const { PersistedQueryLink } = await import('@apollo/client/link/persisted-queries');
      const { url, requests } = await listen({ apq: true });
      const make = () =>
        new ApolloClient({
          link: new PersistedQueryLink({ sha256, useGETForHashedQueries }).concat(new HttpLink({ uri: url })),
          cache: new InMemoryCache(),
        });
      const query = gql('query Hello { hello }');
      for (const client of [make(), make()]) {
        expect((await client.query({ query })).data).toEqual({ hello: 'world' });
        client.stop();
      }
      expect(requests.map((params) => 'query' in params)).toEqual([false, true, false]);
      expect(requests.map(({ method }) => method)).toEqual(
        useGETForHashedQueries ? ['GET', 'POST', 'GET'] : ['POST', 'POST', 'POST'],
      );
    },
  );

  it('PersistedQueryLink stops sending hashes when the server does not support them', async () => {
    const { ApolloClient, gql, HttpLink, InMemoryCache } = await import('@apollo/client/core');
    const { PersistedQueryLink } = await import('@apollo/client/link/persisted-queries');
    const { url, requests } = await listen(undefined);
    const client = new ApolloClient({
      link: new PersistedQueryLink({ sha256 }).concat(new HttpLink({ uri: url })),
      cache: new InMemoryCache(),
    });
    for (const query of [gql('query One { hello }'), gql('query Two { add(a: 1) }')]) {
      expect((await client.query({ query })).error).toBeUndefined();
    }
    expect(requests.map((params) => 'query' in params)).toEqual([false, true, true]);
    client.stop();
  });

  it('PersistedQueryLink of Apollo Client 3 registers a query', async () => {
    const { ApolloClient, gql, HttpLink, InMemoryCache } = await import('apollo-client3/core');
    const { createPersistedQueryLink } = await import('apollo-client3/link/persisted-queries');
    const { url, requests } = await listen({ apq: true });
    const client = new ApolloClient({
      link: createPersistedQueryLink({ sha256 }).concat(new HttpLink({ uri: url })),
      cache: new InMemoryCache(),
    });
    expect((await client.query({ query: gql('{ hello }') })).data).toEqual({ hello: 'world' });
    expect(requests.map((params) => 'query' in params)).toEqual([false, true]);
    client.stop();
  });

  it('a client with the manifest of generate-persisted-query-manifest sends ids only', async () => {
    const folder = project({
      'package.json': '{ "type": "module" }',
      'src/queries.js': `import { gql } from '@apollo/client/core';
        export const HELLO = gql\`query Hello { hello }\`;
        export const USER = gql\`query User($id: ID!) { user(id: $id) { ...Name } } fragment Name on User { id name }\`;
        export const COUNT = gql\`mutation Count { count }\`;
      `,
    });
    await run(folder, '@apollo/generate-persisted-query-manifest/cli.js');
    const path = join(folder, 'persisted-query-manifest.json');
    const manifest = JSON.parse(readFileSync(path, 'utf8'));
    expect(manifest.operations).toHaveLength(3);

    const { ApolloClient, gql, HttpLink, InMemoryCache } = await import('@apollo/client/core');
    const { PersistedQueryLink } = await import('@apollo/client/link/persisted-queries');
    const { generatePersistedQueryIdsFromManifest } = await import('@apollo/persisted-query-lists');
    const { url, requests, reports } = await listen({ from: path, only: true });
    const ids = generatePersistedQueryIdsFromManifest({ loadManifest: async () => manifest });
    const client = new ApolloClient({
      link: new PersistedQueryLink(ids).concat(new HttpLink({ uri: url })),
      cache: new InMemoryCache(),
    });
    expect((await client.query({ query: gql('query Hello { hello }') })).data).toEqual({ hello: 'world' });
    const user = gql('query User($id: ID!) { user(id: $id) { ...Name } } fragment Name on User { id name }');
    expect((await client.query({ query: user, variables: { id: 1 } })).data).toMatchObject({
      user: { __typename: 'User', name: 'user 1' },
    });
    expect((await client.mutate({ mutation: gql('mutation Count { count }') })).data).toEqual({ count: 1 });
    expect(requests.every((params) => !('query' in params))).toBe(true);
    expect(requests).toHaveLength(3);
    expect(reports).toEqual([]);
    client.stop();
  });
});

describe("urql's persisted exchange", () => {
  it.each([undefined, true] as const)(
    'persistedExchange registers a query and finds it by hash (GET: %s)',
    async (preferGetForPersistedQueries) => {
      const { persistedExchange } = await import('@urql/exchange-persisted');
      const { url, requests } = await listen({ apq: true });
      const make = () =>
        new Client({
          url,
          preferGetMethod: false,
          exchanges: [persistedExchange({ preferGetForPersistedQueries }), fetchExchange],
        });
      for (const client of [make(), make()]) {
        const { data, error } = await client.query('query Hello { hello }', {}).toPromise();
        expect([data, error]).toEqual([{ hello: 'world' }, undefined]);
      }
      expect(requests.map((params) => 'query' in params)).toEqual([false, true, false]);
    },
  );

  it('persistedExchange sends the texts when the server does not support hashes', async () => {
    const { persistedExchange } = await import('@urql/exchange-persisted');
    const { url, requests } = await listen(undefined);
    const client = new Client({
      url,
      preferGetMethod: false,
      exchanges: [persistedExchange(), fetchExchange],
    });
    for (const query of ['{ hello }', '{ add(a: 1) }']) {
      expect((await client.query(query, {}).toPromise()).error).toBeUndefined();
    }
    expect(requests.map((params) => 'query' in params)).toEqual([false, true, true]);
  });

  it('persistedExchange with enforced ids sends those of trusted documents', async () => {
    const { persistedExchange } = await import('@urql/exchange-persisted');
    const text = stringifyDocument(createRequest('query Hello { hello }', {}).query);
    const { url, requests } = await listen({ from: { [sha256(text)]: text }, only: true });
    const client = new Client({
      url,
      preferGetMethod: false,
      exchanges: [
        persistedExchange({ enforcePersistedQueries: true, enableForMutation: true }),
        fetchExchange,
      ],
    });
    expect((await client.query('query Hello { hello }', {}).toPromise()).data).toEqual({ hello: 'world' });
    const refused = await client.query('query Other { add(a: 1) }', {}).toPromise();
    expect(refused.error?.graphQLErrors[0]?.extensions['code']).toBe('DOCUMENT_NOT_FOUND');
    expect(requests.map((params) => 'query' in params)).toEqual([false, false]);
  });
});

it("graphqlHTTP serves the persisted documents of graphql-codegen's client preset", async () => {
  const folder = project({
    'schema.graphql': SDL,
    'app.ts': `import { graphql } from './gql';
      export const hello = graphql(\`query Hello { hello }\`);
      export const user = graphql(\`query User($id: ID!) { user(id: $id) { ...Name } }\`);
      export const name = graphql(\`fragment Name on User { id name }\`);
    `,
    'codegen.json': JSON.stringify({
      schema: 'schema.graphql',
      documents: ['app.ts'],
      generates: { './gql/': { preset: 'client', presetConfig: { persistedDocuments: true } } },
    }),
  });
  await run(folder, '@graphql-codegen/cli/cjs/bin.js', '--config', 'codegen.json');
  const path = join(folder, 'gql/persisted-documents.json');
  const documents: Record<string, string> = JSON.parse(readFileSync(path, 'utf8'));
  const generated = readFileSync(join(folder, 'gql/graphql.ts'), 'utf8');
  const hashes = [...generated.matchAll(/"?hash"?: ?"([\w:]+)"/g)].map(([, hash]) => hash as string);
  expect(new Set(hashes)).toEqual(new Set(Object.keys(documents)));
  expect(hashes).toHaveLength(2);

  const { post, get, reports } = await serve({ documents: { from: path, only: true } });
  expect(reports).toEqual([]);
  const idOf = (name: string) => hashes.find((hash) => documents[hash]?.includes(`query ${name}`)) ?? '';
  expect((await post({ documentId: idOf('Hello') })).body).toEqual({ data: { hello: 'world' } });
  expect((await get(`/${idOf('User')}?variables={"id":1}`)).body).toEqual({
    data: { user: { __typename: undefined, id: '1', name: 'user 1' } },
  });
});

it('relay-runtime executes the documents that relay-compiler has persisted', async () => {
  const folder = project({
    'package.json': '{}',
    'persisted.json': '{}',
    'schema.graphql': SDL,
    'app.js': `const { graphql } = require('relay-runtime');
      graphql\`query appUserQuery($id: ID!) { user(id: $id) { id name } }\`;
      graphql\`mutation appCountMutation { count }\`;
    `,
    'relay.config.json': JSON.stringify({
      src: '.',
      language: 'javascript',
      schema: './schema.graphql',
      eagerEsModules: false,
      persistConfig: { file: './persisted.json', algorithm: 'SHA256' },
    }),
  });
  await run(folder, 'relay-compiler/cli.js');
  const path = join(folder, 'persisted.json');
  expect(Object.keys(JSON.parse(readFileSync(path, 'utf8')))).toHaveLength(2);

  const { commitMutation, Environment, fetchQuery, Network, RecordSource, Store } = await import(
    'relay-runtime'
  );
  const { url, requests, reports } = await listen({ from: path, only: true });
  const environment = new Environment({
    network: Network.create(async ({ id, text }, variables) => {
      expect(text).toBeNull();
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(url, {
        method: 'POST',
        headers,
        body: JSON.stringify({ doc_id: id, variables }),
      });
      return response.json();
    }),
    store: new Store(new RecordSource()),
  });
  const query = require(join(folder, '__generated__/appUserQuery.graphql.js'));
  const data = await fetchQuery(environment, query, { id: '1' }).toPromise();
  expect(data).toMatchObject({ user: { id: '1', name: 'user 1' } });
  const mutation = require(join(folder, '__generated__/appCountMutation.graphql.js'));
  const result = await new Promise((resolve, reject) =>
    commitMutation(environment, { mutation, variables: {}, onCompleted: resolve, onError: reject }),
  );
  expect(result).toEqual({ count: 1 });
  expect(requests.map(({ query }) => query)).toEqual([undefined, undefined]);
  expect(reports).toEqual([]);
});
