/** @tags node-lines graphql engine */
import { createHash } from 'node:crypto';
import { graphqlHTTP } from 'espalier';
import { eachExpress } from '../express.ts';
import { file, map, operations, post } from './form.ts';
import { createSchema, FORM, MANY, ONE, type Seen } from './schema.ts';
import { startServer, type TestServer } from './server.ts';

const batching: object = { batching: true };

const sha256 = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex');

eachExpress((express) => {
  const seen: Seen = [];
  let server: TestServer;
  let url: string;

  beforeAll(async () => {
    const app = express();
    app.use(express.json(), express.urlencoded({ extended: true }));
    app.use('/graphql', graphqlHTTP(createSchema(seen), batching));
    server = await startServer(app);
    url = `${server.url}/graphql`;
  });
  afterAll(() => server[Symbol.asyncDispose]());
  beforeEach(() => {
    seen.length = 0;
  });

  it('uploads pass one file to a resolver', async () => {
    const { status, json } = await post(url, [
      operations({ query: ONE, variables: { file: null } }),
      map({ 0: ['variables.file'] }),
      file('0', 'héllo', 'a.txt'),
    ]);
    expect(status).toBe(200);
    expect(json.data.one).toEqual({
      filename: 'a.txt',
      mimetype: 'text/plain',
      encoding: '7bit',
      fieldName: '0',
      size: 6,
      text: 'héllo',
      sha256: sha256('héllo'),
    });
  });

  it('uploads pass a list of files in the order of the list, not of the parts', async () => {
    const { json } = await post(url, [
      operations({ query: MANY, variables: { files: [null, null] } }),
      map({ a: ['variables.files.1'], b: ['variables.files.0'] }),
      file('a'),
      file('b'),
    ]);
    expect(json.data.many.map(({ text }: { text: string }) => text)).toEqual([
      'content of b',
      'content of a',
    ]);
  });

  it('uploads assign files to fields of input objects', async () => {
    const { json } = await post(url, [
      operations({ query: FORM, variables: { form: { title: 't', file: null, files: [null] } } }),
      map({ 0: ['variables.form.file'], 1: ['variables.form.files.0'] }),
      file('0'),
      file('1'),
    ]);
    expect(json.data.form.map(({ text }: { text: string }) => text)).toEqual([
      'content of 0',
      'content of 1',
    ]);
  });

  it('uploads pass one value for a file at several paths', async () => {
    const { json } = await post(url, [
      operations({ query: MANY, variables: { files: [null, null] } }),
      map({ 0: ['variables.files.0', 'variables.files.1'] }),
      file('0'),
    ]);
    expect(json.data.many.map(({ text }: { text: string }) => text)).toEqual([
      'content of 0',
      'content of 0',
    ]);
    expect(seen[0]).toBe(seen[1]);
  });

  it('uploads run a batch, each operation with its files', async () => {
    const { status, json } = await post(url, [
      operations([
        { query: ONE, variables: { file: null } },
        { query: MANY, variables: { files: [null] } },
      ]),
      map({ 0: ['0.variables.file'], 1: ['1.variables.files.0'] }),
      file('0'),
      file('1'),
    ]);
    expect(status).toBe(200);
    expect(json[0].data.one.text).toBe('content of 0');
    expect(json[1].data.many[0].text).toBe('content of 1');
  });

  it('uploads count each file as one of the 20 000 values of variables', async () => {
    const others = Array(19_995).fill(1);
    const send = async (files: readonly null[]) =>
      post(url, [
        operations({ query: MANY, variables: { files, others } }),
        map(Object.fromEntries(files.map((_, index) => [index, [`variables.files.${index}`]]))),
        ...files.map((_, index) => file(String(index))),
      ]);
    // The variables themselves are one value too, and so is each list.
    expect((await send([null, null])).status).toBe(200);
    expect((await send([null, null, null])).json.errors[0].extensions.code).toBe('LIMIT_VARIABLES');
  });

  it('uploads accept the map before the operations, and ignore unknown parts', async () => {
    const { json } = await post(url, [
      map({ 0: ['variables.file'] }),
      { name: 'csrf', body: 'token' },
      operations({ query: ONE, variables: { file: null } }),
      file('unmapped'),
      file('0'),
      { name: 'after', body: 'x' },
    ]);
    expect(json.data.one.text).toBe('content of 0');
  });

  it('uploads accept a form without files', async () => {
    const { json } = await post(url, [operations({ query: '{ hello }' }), map({})]);
    expect(json).toEqual({ data: { hello: 'world' } });
  });

  it.each([
    ['in memory', 200 * 1024],
    ['in a temporary file', 3 * 1024 * 1024 + 17],
    ['without content', 0],
  ])('uploads preserve every byte of a file: %s', async (_, size) => {
    const content = Buffer.alloc(size);
    for (let index = 0; index < size; index++) content[index] = (index * 31) ^ (index >> 8);
    const { json } = await post(url, [
      operations({ query: ONE, variables: { file: null } }),
      map({ 0: ['variables.file'] }),
      file('0', content),
    ]);
    expect(json.data.one).toMatchObject({ size, sha256: sha256(content) });
  });

  it('uploads work with a resolver that throws and with one that does not read the file', async () => {
    for (const [field, expected] of [
      ['fails', { data: { fails: null } }],
      ['unread', { data: { unread: '0.txt' } }],
    ] as const) {
      const { status, json } = await post(url, [
        operations({
          query: `mutation ($file: Upload) { ${field}(file: $file) }`,
          variables: { file: null },
        }),
        map({ 0: ['variables.file'] }),
        file('0', Buffer.alloc(4 << 20)),
      ]);
      expect(status).toBe(200);
      expect(json).toMatchObject(expected);
    }
  });
});
