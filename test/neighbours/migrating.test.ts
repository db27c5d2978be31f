import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';

const root = resolve(__dirname, '../..');
// The code in this folder finds the packages of test/neighbours.
const folder = join(__dirname, 'artifacts', 'migrating');
const pages = readdirSync(join(root, 'docs', 'migrating')).map((name) => name.replace('.md', ''));
const running = new Set<ChildProcess>();

afterEach(() => {
  for (const child of running) child.kill();
  running.clear();
});

/** Makes every server of the page listen on a free port instead of 3000 and report it. */
const ANY_PORT = `
const net = require('node:net');
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  this.once('listening', () => process.send(this.address().port));
  return listen.call(this, port === 3000 ? { port: 0, host: '127.0.0.1' } : port, ...rest);
};
`;

beforeAll(() => {
  mkdirSync(join(folder, 'public'), { recursive: true });
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  if (!existsSync(join(folder, 'node_modules', 'espalier')))
    symlinkSync(root, join(folder, 'node_modules', 'espalier'));
  writeFileSync(join(folder, 'public', 'index.html'), '<!doctype html><title>Home</title>');
  writeFileSync(join(folder, 'public', 'hello.txt'), 'hello, file');
  writeFileSync(join(folder, 'port.cjs'), ANY_PORT);
});

async function start(
  page: string,
  which: 'before' | 'after',
  edit = (code: string): string => code,
): Promise<string> {
  const text = readFileSync(join(root, 'docs', 'migrating', `${page}.md`), 'utf8');
  const block = new RegExp(`^\`\`\`ts ${which}\\n([\\s\\S]*?)^\`\`\``, 'm').exec(text)?.[1];
  if (block === undefined) throw new Error(`docs/migrating/${page}.md has no "${which}" block`);
  const file = join(folder, `${page}-${which}.mts`);
  writeFileSync(file, edit(block));
  const child = spawn(process.execPath, ['--require', './port.cjs', '--import', 'tsx', file], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  running.add(child);
  let output = '';
  child.stderr?.on('data', (chunk) => (output += chunk));
  const port = await new Promise<number>((done, fail) => {
    child.once('message', (message) => done(message as number));
    child.once('exit', (code) => fail(new Error(`${page} (${which}) ended with ${code}: ${output}`)));
  });
  return `http://127.0.0.1:${port}`;
}

type ExchangeRequest = (origin: string) => Promise<unknown>;

const get =
  (path: string, headers: Record<string, string> = {}): ExchangeRequest =>
  async (origin) => {
    const response = await fetch(origin + path, { headers });
    const type = response.headers.get('content-type')?.split(';')[0]?.replace('graphql-response+', '');
    return [response.status, type, response.status === 200 ? await response.text() : ''];
  };

const query =
  (body: object, headers: Record<string, string> = {}): ExchangeRequest =>
  async (origin) => {
    const response = await fetch(`${origin}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    const { data, errors } = (await response.json()) as { data?: unknown; errors?: unknown[] };
    return [data ?? null, errors?.length ?? 0];
  };

const upload: ExchangeRequest = async (origin) => {
  const body = new FormData();
  const operations = { query: 'mutation ($file: Upload) { store(file: $file) }', variables: { file: null } };
  body.set('operations', JSON.stringify(operations));
  body.set('map', JSON.stringify({ 0: ['variables.file'] }));
  body.set('0', new Blob(['some text']), 'note.txt');
  const response = await fetch(`${origin}/graphql`, { method: 'POST', body });
  return [response.status, await response.json()];
};

const subscribe: ExchangeRequest = async (origin) => {
  const url = `${origin.replace('http', 'ws')}/graphql`;
  const client = createClient({ url, webSocketImpl: WebSocket, retryAttempts: 0 });
  const received: unknown[] = [];
  for await (const event of client.iterate({ query: 'subscription { count }' })) received.push(event);
  await client.dispose();
  return received;
};

const hello = query({ query: '{ hello }' });
const wrong = query({ query: '{ nothing }' });
const CASES: Record<string, { sendRequest: ExchangeRequest; expected: unknown }[]> = {
  'express-static': [
    { sendRequest: get('/static/hello.txt'), expected: [200, 'text/plain', 'hello, file'] },
    { sendRequest: get('/static/absent.txt'), expected: [404, 'text/html', ''] },
    { sendRequest: get('/static/'), expected: [404, 'text/html', ''] },
  ],
  sirv: [
    { sendRequest: get('/'), expected: [200, 'text/html', '<!doctype html><title>Home</title>'] },
    { sendRequest: get('/hello.txt'), expected: [200, 'text/plain', 'hello, file'] },
    {
      sendRequest: get('/some/page', { accept: 'text/html' }),
      expected: [200, 'text/html', '<!doctype html><title>Home</title>'],
    },
    { sendRequest: get('/absent.js'), expected: [404, 'text/html', ''] },
  ],
  'express-graphql': [
    { sendRequest: hello, expected: [{ hello: 'Hello world' }, 0] },
    {
      sendRequest: query({ query: 'query ($n: String) { hello(name: $n) }', variables: { n: 'you' } }),
      expected: [{ hello: 'Hello you' }, 0],
    },
    {
      sendRequest: get('/graphql?query={hello}'),
      expected: [200, 'application/json', '{"data":{"hello":"Hello world"}}'],
    },
    { sendRequest: wrong, expected: [null, 1] },
  ],
  'graphql-http': [
    { sendRequest: hello, expected: [{ hello: 'world' }, 0] },
    { sendRequest: wrong, expected: [null, 1] },
  ],
  'apollo-server': [
    { sendRequest: query({ query: '{ hello }' }, { 'x-user': 'ada' }), expected: [{ hello: 'ada' }, 0] },
    { sendRequest: wrong, expected: [null, 1] },
  ],
  'graphql-yoga': [
    { sendRequest: hello, expected: [{ hello: 'world' }, 0] },
    { sendRequest: wrong, expected: [null, 1] },
  ],
  'graphql-upload': [{ sendRequest: upload, expected: [200, { data: { store: 'note.txt: some text' } }] }],
  'graphql-ws': [{ sendRequest: subscribe, expected: [1, 2, 3].map((count) => ({ data: { count } })) }],
};

describe('the migration guides', () => {
  it('every migration guide has test cases', () => {
    expect(pages.sort()).toEqual(Object.keys(CASES).sort());
  });

  it.each(pages)(
    'the code before and after in the guide for %s sends the same responses',
    async (page) => {
      const before = await start(page, 'before');
      const after = await start(page, 'after');
      for (const { sendRequest, expected } of CASES[page] as {
        sendRequest: ExchangeRequest;
        expected: unknown;
      }[]) {
        expect(['before', await sendRequest(before)]).toEqual(['before', expected]);
        expect(['after', await sendRequest(after)]).toEqual(['after', expected]);
      }
    },
    60_000,
  );
});

it('graphqlHTTP refuses the scalar of graphql-upload, which refuses the files of graphqlHTTP', async () => {
  const keepScalar = (code: string): string =>
    `import GraphQLUpload from 'graphql-upload/GraphQLUpload.mjs';\n${code.replace('type: Upload', 'type: GraphQLUpload')}`;
  await expect(start('graphql-upload', 'after', keepScalar)).rejects.toThrow(
    /the scalar "Upload" of the schema is that of graphql-upload.*pass the scalar Upload of espalier/,
  );
});
