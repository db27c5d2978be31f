import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../until.ts';
import { folder, serve, sha256, stopAll } from './serve.ts';

afterEach(stopAll);

const HELLO = '{ hello }';
const read = (path: string): Record<string, string> => JSON.parse(readFileSync(path, 'utf8'));
const hasDocuments = (path: string, count: number) => () =>
  existsSync(path) && Object.keys(read(path)).length === count;

it('graphqlHTTP records valid documents by the ids that clients send, or by their hashes, and serves them by id', async () => {
  const path = join(folder(), 'documents.json');
  const { post, get } = await serve({ documents: { from: path, record: path } });
  await post({ query: HELLO });
  await post({ query: HELLO });
  await post({ query: 'query Add { add(a: 1) }', documentId: 'add' });
  const other = 'query Other { hello }';
  await post({ query: other, extensions: { persistedQuery: { version: 1, sha256Hash: sha256(other) } } });
  await post({ query: '{ nope }' });
  await post({ query: '{ __schema { queryType { name } } }' });
  await until(hasDocuments(path, 3));
  expect(read(path)).toEqual({
    [sha256(HELLO)]: HELLO,
    add: 'query Add { add(a: 1) }',
    [sha256(other)]: other,
  });
  expect(Object.keys(read(path))).toEqual(Object.keys(read(path)).sort());
  while ((await get({ documentId: 'add' })).code !== undefined)
    await new Promise((resolve) => setTimeout(resolve, 50));
  expect((await get({ documentId: `sha256:${sha256(HELLO)}` })).body).toEqual({ data: { hello: 'world' } });
});

it('graphqlHTTP does not replace a trusted document by the text of a request that has its id', async () => {
  const path = join(folder(), 'documents.json');
  writeFileSync(path, JSON.stringify({ hello: HELLO }));
  const { post } = await serve({ documents: { from: path, record: path } });
  await post({ query: '{ nope }', documentId: 'hello' });
  await post({ query: 'query Other { hello }', documentId: 'other' });
  await until(hasDocuments(path, 2));
  expect(read(path)).toEqual({ hello: HELLO, other: 'query Other { hello }' });
});

it('graphqlHTTP keeps the documents that the file has, also those of another process', async () => {
  const path = join(folder(), 'documents.json');
  writeFileSync(path, '{"a":"{ a }"}');
  const [one, other] = [
    await serve({ documents: { record: path } }),
    await serve({ documents: { record: path } }),
  ];
  await one.post({ query: HELLO });
  await until(hasDocuments(path, 2));
  await other.post({ query: 'query Other { hello }' });
  await until(hasDocuments(path, 3));
  const { mtimeMs } = statSync(path);
  await other.post({ query: HELLO });
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(statSync(path).mtimeMs).toBe(mtimeMs);
});

it('graphqlHTTP reports a file that it cannot write and continues to serve', async () => {
  const { post, reports } = await serve({
    documents: { record: join(folder(), 'missing', 'documents.json') },
  });
  expect((await post({ query: HELLO })).body).toEqual({ data: { hello: 'world' } });
  await until(() => reports.length === 1);
  expect(reports[0]?.message).toMatch(/ENOENT/);
});

it('graphqlHTTP throws for a file to record in that is a manifest of Apollo, and in production', async () => {
  const path = join(folder(), 'manifest.json');
  writeFileSync(path, '{"format":"apollo-persisted-query-manifest","version":1,"operations":[]}');
  await expect(serve({ documents: { record: path } })).rejects.toThrow(
    /contains other values than texts by id/,
  );
  expect(read(path)).toHaveProperty('format');
  const environment = process.env['NODE_ENV'];
  process.env['NODE_ENV'] = 'production';
  try {
    await expect(serve({ documents: { record: 'a.json' } })).rejects.toThrow(
      /"documents.record" is "a.json" and is for development/,
    );
  } finally {
    process.env['NODE_ENV'] = environment;
  }
});
