/** @tags once */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createClient, type FormattedExecutionResult } from 'graphql-ws';
import WebSocket from 'ws';
import { snippets } from '../snippets.ts';

// Runs the guide of docs/authorization.md, from the login to the field.

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
  const [guide] = snippets('ts neighbours').filter(({ page }) => page === 'docs/authorization.md');
  writeFileSync(join(folder, 'guide.mts'), guide?.code ?? '');
});

afterAll(() => {
  for (const child of running) child.kill();
});

async function start(lifetime: string): Promise<string> {
  const child = spawn(process.execPath, ['--require', './port.cjs', '--import', 'tsx', 'guide.mts'], {
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
  const host = await start('2 seconds');
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
