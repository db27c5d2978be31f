/** @tags once */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createClient as createStreamClient } from 'graphql-sse';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { toJavaScript } from '../javascript.ts';

const root = resolve(__dirname, '../..');
// The code in this folder finds the packages of test/neighbours.
const folder = join(__dirname, 'artifacts', 'migrating');
const pages = readdirSync(join(root, 'docs', 'migrating'))
  // Those of hosting services have no code before.
  .filter((name) => readFileSync(join(root, 'docs', 'migrating', name), 'utf8').includes('```ts before'))
  .map((name) => name.replace('.md', ''));
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
  const isOurs = port === 3000 || port.port === 3000;
  return listen.call(this, isOurs ? { port: 0, host: '127.0.0.1' } : port, ...rest);
};
`;

beforeAll(() => {
  mkdirSync(join(folder, 'public', 'assets'), { recursive: true });
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  if (!existsSync(join(folder, 'node_modules', 'espalier')))
    symlinkSync(root, join(folder, 'node_modules', 'espalier'));
  writeFileSync(join(folder, 'public', 'index.html'), '<!doctype html><title>Home</title>');
  writeFileSync(join(folder, 'public', 'hello.txt'), 'hello, file');
  writeFileSync(join(folder, 'public', 'assets', 'app-1a2b3c4d.js'), 'run();');
  writeFileSync(join(folder, 'port.cjs'), ANY_PORT);
});

const textOf = (page: string): string => readFileSync(join(root, 'docs', 'migrating', `${page}.md`), 'utf8');

type Which = 'before' | 'after' | 'neighbours';

function blockOf(page: string, which: Which): string {
  const block = new RegExp(`^\`\`\`ts ${which}\\n([\\s\\S]*?)^\`\`\``, 'm').exec(textOf(page))?.[1];
  if (block === undefined) throw new Error(`docs/migrating/${page}.md has no "${which}" block`);
  return block;
}

async function start(page: string, which: Which, edit = (code: string): string => code): Promise<string> {
  const file = join(folder, `${page}-${which}.mjs`);
  writeFileSync(file, toJavaScript(edit(blockOf(page, which))));
  const child = spawn(process.execPath, ['--require', './port.cjs', file], {
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

const signedIn = { authorization: 'Bearer secret' };

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

const upload =
  (operation: string, headers: Record<string, string> = {}): ExchangeRequest =>
  async (origin) => {
    const body = new FormData();
    body.set('operations', JSON.stringify({ query: operation, variables: { file: null } }));
    body.set('map', JSON.stringify({ 0: ['variables.file'] }));
    body.set('0', new Blob(['some text']), 'note.txt');
    const response = await fetch(`${origin}/graphql`, { method: 'POST', headers, body });
    return [response.status, await response.json()];
  };

/** The first event of a stream that is open before a file is added. */
const eventOf =
  (subscription: string): ExchangeRequest =>
  async (origin) => {
    const stream = await fetch(`${origin}/graphql?query=${encodeURIComponent(subscription)}`, {
      headers: { accept: 'text/event-stream' },
    });
    await upload('mutation ($file: File!) { add(file: $file) }')(origin);
    let received = '';
    for await (const chunk of stream.body as ReadableStream<Uint8Array>) {
      received += Buffer.from(chunk).toString();
      const event = /^data: (\{.*\})$/m.exec(received);
      if (event !== null) return JSON.parse(event[1] as string);
    }
    return received;
  };

/** The results that the client of graphql-sse gets, or the messages of errors. */
const streamOf =
  (query: string): ExchangeRequest =>
  async (origin) => {
    const client = createStreamClient({ url: `${origin}/graphql`, headers: signedIn, retryAttempts: 0 });
    const received: unknown[] = [];
    try {
      for await (const { errors, ...result } of client.iterate({ query }))
        received.push(errors === undefined ? result : errors[0]?.message);
    } catch (error) {
      // Errors of the validation are a list, or a response that is no stream.
      const [first] = (Array.isArray(error) ? error : await bodyErrors(error)) as Error[];
      received.push(first?.message);
    }
    client.dispose();
    return received;
  };

const bodyErrors = async (error: unknown): Promise<unknown> =>
  ((await (error as { response: Response }).response.json()) as { errors: unknown }).errors;

const connect = (origin: string, connectionParams: Record<string, unknown>) =>
  createClient({
    url: `${origin.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
    connectionParams,
  });

const subscribe =
  (connectionParams: Record<string, unknown>): ExchangeRequest =>
  async (origin) => {
    const client = connect(origin, connectionParams);
    const received: unknown[] = [];
    for await (const event of client.iterate({ query: 'subscription { count }' })) received.push(event);
    await client.dispose();
    return received;
  };

/** An event of a socket. The mutation is sent until it arrives, because the server does not say when it has subscribed. */
const socketEventOf =
  (subscription: string, mutate: ExchangeRequest): ExchangeRequest =>
  async (origin) => {
    const client = connect(origin, signedIn);
    let arrived = false;
    const event = client
      .iterate({ query: subscription })
      .next()
      .finally(() => {
        arrived = true;
      });
    while (!arrived) await mutate(origin);
    const { value } = await event;
    await client.dispose();
    return value;
  };

/** The code with which the server closes the socket of these parameters. */
const refused =
  (connectionParams: Record<string, unknown>): ExchangeRequest =>
  async (origin) => {
    const events = connect(origin, connectionParams).iterate({ query: 'subscription { count }' });
    return events.next().catch((event: { code?: number }) => event.code);
  };

const preflight: ExchangeRequest = async (origin) => {
  const headers = { origin: 'https://app.example.com', 'access-control-request-method': 'POST' };
  const response = await fetch(`${origin}/graphql`, { method: 'OPTIONS', headers });
  return [response.status, response.headers.get('access-control-allow-origin')];
};

const addCover = upload('mutation ($file: Upload!) { addCover(file: $file) }', signedIn);
const wrong = query({ query: '{ nothing }' });
const withLoader = [
  { sendRequest: query({ query: '{ me }' }, signedIn), expected: [{ me: 'Ada' }, 0] },
  { sendRequest: query({ query: '{ me }' }), expected: [{ me: null }, 0] },
  {
    sendRequest: query({
      query: 'query ($id: ID!) { author(id: $id) { name } }',
      variables: { id: '7' },
    }),
    expected: [{ author: { name: 'Author 7' } }, 0],
  },
  {
    sendRequest: get('/graphql?query={me}', signedIn),
    expected: [200, 'application/json', '{"data":{"me":"Ada"}}'],
  },
  { sendRequest: wrong, expected: [null, 1] },
];
const page = '<!doctype html><title>Home</title>';
const cacheControl: ExchangeRequest = async (origin) => {
  const { headers } = await fetch(`${origin}/assets/app-1a2b3c4d.js`);
  return headers.get('cache-control')?.split(', ').sort();
};
const IMMUTABLE = { sendRequest: cacheControl, expected: ['immutable', 'max-age=31536000', 'public'] };
const SITE = [
  { sendRequest: get('/'), expected: [200, 'text/html', page] },
  { sendRequest: get('/hello.txt'), expected: [200, 'text/plain', 'hello, file'] },
  { sendRequest: get('/some/page', { accept: 'text/html' }), expected: [200, 'text/html', page] },
  IMMUTABLE,
];
const counted = (user: string) => [1, 2, 3].map((n) => ({ data: { count: `${n} for ${user}` } }));
const CASES: Record<string, { sendRequest: ExchangeRequest; expected: unknown }[]> = {
  'express-static': SITE,
  sirv: [...SITE, { sendRequest: get('/absent.js'), expected: [404, 'text/html', ''] }],
  'express-graphql': withLoader,
  'graphql-http': withLoader,
  'apollo-server': [
    { sendRequest: query({ query: '{ me }' }, signedIn), expected: [{ me: 'Ada' }, 0] },
    {
      sendRequest: query({ query: '{ me books { author { name } } }' }),
      expected: [{ me: null, books: [{ author: { name: 'Author 1' } }] }, 0],
    },
    { sendRequest: subscribe({ authorization: 'Bearer secret' }), expected: counted('Ada') },
    { sendRequest: preflight, expected: [204, '*'] },
    { sendRequest: wrong, expected: [null, 1] },
  ],
  'graphql-yoga': [
    { sendRequest: query({ query: '{ me }' }, signedIn), expected: [{ me: 'ada' }, 0] },
    {
      sendRequest: upload('mutation ($file: File!) { add(file: $file) }'),
      expected: [200, { data: { add: 'guest: note.txt: some text' } }],
    },
    {
      sendRequest: eventOf('subscription { added }'),
      expected: { data: { added: 'guest: note.txt: some text' } },
    },
    { sendRequest: wrong, expected: [null, 1] },
  ],
  mercurius: [
    { sendRequest: query({ query: '{ me }' }, signedIn), expected: [{ me: 'Ada' }, 0] },
    {
      sendRequest: query({ query: '{ me books { title author { name } } }' }),
      expected: [{ me: null, books: [{ title: 'One', author: { name: 'Author 1' } }] }, 0],
    },
    {
      sendRequest: addCover,
      expected: [200, { data: { addCover: 'note.txt: 9 characters by Ada' } }],
    },
    {
      sendRequest: socketEventOf('subscription { coverAdded }', addCover),
      expected: { data: { coverAdded: 'note.txt: 9 characters by Ada, Ada!' } },
    },
    { sendRequest: wrong, expected: [null, 1] },
  ],
  'graphql-upload': [
    {
      sendRequest: upload('mutation ($file: Upload!) { store(file: $file) }'),
      expected: [200, { data: { store: 'guest: note.txt: some text' } }],
    },
  ],
  multer: [
    {
      sendRequest: async (origin) => {
        const body = new FormData();
        body.set('title', 'Note');
        body.set('note', new Blob(['some text'], { type: 'text/plain' }), 'note.txt');
        const response = await fetch(`${origin}/notes`, { method: 'POST', body });
        return [response.status, await response.json()];
      },
      expected: [200, { title: 'Note', name: 'note.txt', size: 9, text: 'some text' }],
    },
    {
      sendRequest: async (origin) => {
        const body = new FormData();
        body.set('title', 'Note');
        return (await fetch(`${origin}/notes`, { method: 'POST', body })).status;
      },
      expected: 400,
    },
  ],
  'graphql-sse': [
    {
      sendRequest: streamOf('subscription { count }'),
      expected: [1, 2, 3].map((n) => ({ data: { count: `${n} for Ada` } })),
    },
    { sendRequest: streamOf('{ me }'), expected: [{ data: { me: 'Ada' } }] },
    { sendRequest: streamOf('{ nothing }'), expected: ['Cannot query field "nothing" on type "Query".'] },
  ],
  'graphql-ws': [
    { sendRequest: subscribe({ token: 'secret' }), expected: counted('Ada') },
    { sendRequest: refused({ token: 'wrong' }), expected: 4403 },
  ],
};

/** The packages that the code of a page imports. */
const imported = (code: string): string[] =>
  [...code.matchAll(/ from '(?!node:)((?:@[\w-]+\/)?[\w-]+)/g)].map(([, name]) => name as string);

describe('the migration guides', () => {
  it('every migration guide has test cases', () => {
    expect(pages.sort()).toEqual(Object.keys(CASES).sort());
  });

  it.each(pages)('the guide for %s names the packages that the code no longer imports', (page) => {
    const uninstalled = /^Uninstall: `npm uninstall ([^`]+)`/m.exec(textOf(page))?.[1]?.split(' ');
    const kept = new Set(imported(blockOf(page, 'after')));
    const gone = imported(blockOf(page, 'before')).filter((name) => !kept.has(name));
    // Other code may need these, as the sentence says.
    const optional = ['compression', 'graphql-http', ...(page === 'graphql-ws' ? ['graphql-ws'] : [])];
    expect(uninstalled).toEqual(expect.arrayContaining(gone.filter((name) => !optional.includes(name))));
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

it('the example for Fastify in the guide for mercurius serves queries, multipart requests and sockets', async () => {
  const origin = await start('mercurius', 'neighbours');
  const body = new FormData();
  body.set('operations', JSON.stringify({ query: '{ me }' }));
  body.set('map', '{}');
  const response = await fetch(`${origin}/graphql`, { method: 'POST', body, headers: signedIn });
  expect(await response.json()).toEqual({ data: { me: 'Ada' } });
  expect(await query({ query: '{ me }' }, signedIn)(origin)).toEqual([{ me: 'Ada' }, 0]);
  expect(await subscribe({})(origin)).toEqual(['1', '2', '3'].map((count) => ({ data: { count } })));
});

it('the middleware in the guide for mercurius finds a persisted query whose hash is sent as "query"', async () => {
  const code = /^## Persisted queries\n[\s\S]*?```ts\n([\s\S]*?)^```/m.exec(
    textOf('mercurius'),
  )?.[1] as string;
  const origin = await start('mercurius', 'after', () => code);
  expect(await query({ query: '248eb276', persisted: true })(origin)).toEqual([{ add: 2 }, 0]);
  expect(await query({ query: '{ add(x: 1, y: 2) }' })(origin)).toEqual([null, 1]);
});

it('graphqlHTTP refuses the scalar of graphql-upload, which refuses the files of graphqlHTTP', async () => {
  const keepScalar = (code: string): string =>
    `import GraphQLUpload from 'graphql-upload/GraphQLUpload.mjs';\n${code.replace('    Upload,', '    Upload: GraphQLUpload,')}`;
  await expect(start('graphql-upload', 'after', keepScalar)).rejects.toThrow(
    /the scalar "Upload" of the schema is that of graphql-upload.*pass the scalar Upload of espalier/,
  );
});
