/** @tags once */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { run } from '../run-command.ts';
import { startExample, stopExamples } from './start.ts';

afterAll(stopExamples);

const root = resolve(__dirname, '../..');
const folder = resolve(root, 'examples/trusted-documents');

async function build(): Promise<Record<string, string>> {
  await promisify(execFile)(process.execPath, ['--import', 'tsx', resolve(folder, 'build.ts')], {
    cwd: root,
  });
  const text = readFileSync(resolve(folder, 'public/operations.js'), 'utf8');
  return JSON.parse(text.replace('export const ids = ', '').replace(/;\s*$/, ''));
}

it('the example trusted-documents executes the operations that its build step found, and nothing else', async () => {
  const ids = await build();
  expect(Object.keys(ids).sort()).toEqual(['Book', 'Books', 'LikeBook']);

  const { url } = await startExample('trusted-documents/server');
  const get = async (path: string, headers = {}) =>
    (await fetch(`${url}${path}`, { headers: { accept: 'application/json', ...headers } })).json();
  const { data } = await get(`/graphql/${ids['Books']}`);
  expect(data.books).toHaveLength(3);
  const post = async (body: object, headers = {}) =>
    (
      await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
    ).json();
  const variables = { id: '1' };
  expect(await post({ documentId: ids['LikeBook'], variables })).toEqual({ data: { like: { likes: 1 } } });
  expect(await get(`/graphql/${ids['Book']}?variables=${JSON.stringify(variables)}`)).toMatchObject({
    data: { book: { likes: 1 } },
  });
  const query = '{ books { pages } }';
  const refused = { errors: [{ extensions: { code: 'DOCUMENT_NOT_TRUSTED' } }] };
  expect(await post({ query })).toMatchObject(refused);
  expect(await post({ query: '{ __typename }' })).toMatchObject(refused);

  const page = await fetch(`${url}/`);
  expect(await page.text()).toContain('<title>Books</title>');
  const staff = await fetch(`${url}/staff`, { redirect: 'manual' });
  const cookie = staff.headers.get('set-cookie')?.split(';')[0] ?? '';
  expect(await post({ query }, { cookie })).toMatchObject({ data: { books: [{}, {}, {}] } });
  const accept = 'text/html';
  expect(await (await fetch(`${url}/graphql`, { headers: { accept, cookie } })).text()).toContain('GraphiQL');
  expect((await fetch(`${url}/graphql`, { headers: { accept } })).status).not.toBe(200);
});

it('espalier check accepts the manifest of the example trusted-documents', async () => {
  const ids = await build();
  const [schema, documents] = ['schema.graphql', 'persisted-documents.json'].map((name) =>
    resolve(folder, name),
  );
  expect(await run('check', '--schema', `${schema}`, '--documents', `${documents}`)).toEqual({
    code: 0,
    out: `${Object.keys(ids).length} documents fit the schema\n`,
    err: '',
  });
});
