/** @tags once */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createClient, type FormattedExecutionResult } from 'graphql-ws';
import WebSocket from 'ws';
import { snippets } from '../snippets.ts';

// Runs the guides of docs/authentication.md and docs/login-cookie.md, from the login to the field.

const folder = join(__dirname, 'artifacts', 'login');
const running = new Set<ChildProcess>();

const ANY_PORT = `
const net = require('node:net');
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  this.once('listening', () => process.send(this.address().port));
  return listen.call(this, { port: 0, host: '127.0.0.1' }, ...rest);
};
`;

beforeAll(() => {
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  const link = join(folder, 'node_modules', 'espalier');
  if (!existsSync(link)) symlinkSync(resolve(__dirname, '../..'), link);
  writeFileSync(join(folder, 'port.cjs'), ANY_PORT);
  const guide = snippets('ts neighbours').find(
    ({ page, code }) => page === 'docs/authentication.md' && code.includes('SignJWT'),
  );
  writeFileSync(join(folder, 'guide.mts'), guide?.code ?? '');
  const [cookie] = snippets('ts').filter(({ page }) => page === 'docs/login-cookie.md');
  writeFileSync(join(folder, 'cookie.mts'), cookie?.code ?? '');
});

afterAll(() => {
  for (const child of running) child.kill();
});

async function start(lifetime: string, file = 'guide.mts'): Promise<string> {
  const child = spawn(process.execPath, ['--require', './port.cjs', '--import', 'tsx', file], {
    cwd: folder,
    env: { ...process.env, TOKEN_LIFETIME: lifetime },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  running.add(child);
  let output = '';
  child.stderr?.on('data', (chunk) => (output += chunk));
  const port = await new Promise<unknown>((done, fail) => {
    child.once('message', done);
    child.once('exit', (code) => fail(new Error(`ended with ${code}: ${output}`)));
  });
  return `127.0.0.1:${port}`;
}

function post(url: string, body: object, token?: string): Promise<Response> {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/graphql-response+json',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
}

async function logIn(host: string, name: string, password: string): Promise<string> {
  const response = await post(`http://${host}/login`, { name, password });
  return ((await response.json()) as { token: string }).token;
}

it('a token of the login opens fields by its scopes', async () => {
  const host = await start('15 minutes');
  for (const credentials of [{}, { name: 'ada' }, { name: 'ada', password: 'wrong' }, { name: 'eve' }])
    expect((await post(`http://${host}/login`, credentials)).status).toBe(401);
  const [ada, bob] = [await logIn(host, 'ada', 'lovelace'), await logIn(host, 'bob', 'builder')];
  const ask = async (query: string, token?: string) => {
    const response = await post(`http://${host}/graphql`, { query }, token);
    return [response.status, ((await response.json()) as { data?: object }).data];
  };
  expect(await ask('{ me }')).toEqual([401, undefined]);
  expect(await ask('{ me }', bob)).toEqual([200, { me: 'bob' }]);
  const add = 'mutation { addNote(text: "x") }';
  expect(await ask(add, bob)).toEqual([403, undefined]);
  expect(await ask(add, ada)).toEqual([200, { addNote: 1 }]);
  const [head, body, signature] = ada.split('.') as [string, string, string];
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString());
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  for (const forged of [
    `${head}.${encode({ ...claims, sub: 'root' })}.${signature}`,
    `${encode({ alg: 'none' })}.${body}.`,
    `${head}.${body}`,
    'x',
  ])
    expect(await ask('{ me }', forged)).toEqual([401, undefined]);
});

it('a token that expires ends a subscription over WebSocket', async () => {
  const host = await start('4 seconds');
  const authorization = `Bearer ${await logIn(host, 'bob', 'builder')}`;
  const client = createClient({
    url: `ws://${host}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization },
  });
  const results: FormattedExecutionResult<Record<string, unknown>, unknown>[] = [];
  const ended = (async () => {
    for await (const result of client.iterate({ query: 'subscription { ticks }' })) results.push(result);
  })();
  await expect(ended).rejects.toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }]);
  expect(results.length).toBeGreaterThan(0);
  await client.dispose();
});

it('the cookie of docs/login-cookie.md signs in over HTTP and over sockets, until its user signs out', async () => {
  const host = await start('', 'cookie.mts');
  const send = async (query: string, cookie = ''): Promise<[string[], FormattedExecutionResult]> => {
    const response = await fetch(`http://${host}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', cookie },
      body: JSON.stringify({ query }),
    });
    return [response.headers.getSetCookie(), (await response.json()) as FormattedExecutionResult];
  };
  const socketOf = (cookie: string, lazy = true) =>
    createClient({
      url: `ws://${host}/graphql`,
      retryAttempts: 0,
      lazy,
      onNonLazyError: () => undefined,
      webSocketImpl: class extends WebSocket {
        constructor(url: string, protocols: string[]) {
          super(url, protocols, { headers: { cookie } });
        }
      },
    });
  const greeting = (cookie: string) =>
    socketOf(cookie)
      .iterate({ query: 'subscription { greeting }' })
      .next()
      .then(
        ({ value }) => value,
        (event: { code: number }) => event.code,
      );

  const [none, wrong] = await send('mutation { logIn(user: "ada", password: "wrong") }');
  expect([none, wrong.errors?.[0]?.extensions?.['code']]).toEqual([[], 'UNAUTHENTICATED']);
  const [set] = await send('mutation { logIn(user: "ada", password: "lovelace") }');
  expect(set).toEqual([
    expect.stringMatching(/^session=[\w-]{43}; Max-Age=86400; .*HttpOnly; SameSite=Lax$/),
  ]);
  const cookie = `other=1; ${set[0]?.split(';')[0]}`;
  expect((await send('{ me }', cookie))[1]).toEqual({ data: { me: 'ada' } });
  expect((await send('{ me }'))[1]).toEqual({ data: { me: null } });
  expect(await greeting(cookie)).toEqual({ data: { greeting: 'Hello ada' } });
  expect(await greeting('')).toBe(4403);

  const open = socketOf(cookie, false);
  const closed = new Promise<unknown>((resolve) => open.on('closed', (event) => resolve(event)));
  const results = open.iterate({ query: 'mutation { logOut }' });
  const overSocket = (await results.next()).value as FormattedExecutionResult;
  expect(overSocket.errors?.[0]?.message).toBe('Send this mutation over HTTP');
  const connected = open.iterate({ query: 'subscription { greeting }' });
  await connected.next();
  const [cleared] = await send('mutation { logOut }', cookie);
  expect(cleared).toEqual([expect.stringContaining('session=; ')]);
  expect(await closed).toMatchObject({ code: 4403 });
  expect((await send('{ me }', cookie))[1]).toEqual({ data: { me: null } });
  expect(await greeting(cookie)).toBe(4403);
});
