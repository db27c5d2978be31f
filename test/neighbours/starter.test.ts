/** @tags once */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { freePort } from '../programs.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { npm, pack, scratchFolder } from '../tarball.ts';

jest.setTimeout(180_000);

const folder = scratchFolder();
const app = join(folder, 'My App');
const children = new Set<ChildProcess>();
/** What npm does besides the installation takes most of its time. */
const NPM = { npm_config_fund: 'false', npm_config_audit: 'false', npm_config_prefer_offline: 'true' };
const PNG = Buffer.from('89504e470d0a1a0a', 'hex');

// A user starts with nothing but the package.
beforeAll(() => {
  const { path } = pack();
  const args = ['exec', '--yes', `--package=${path}`, '--', 'espalier', 'init', app];
  execFileSync('npm', args, { cwd: folder, stdio: 'pipe', env: { ...process.env, ...NPM } });
  npm(['install', '--package-lock-only', '--prefer-offline', path], app);
  // The Dockerfile installs the packages that the lockfile names.
  build(commands()[0] as string);
});

afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const dockerfile = (): string => readFileSync(join(app, 'Dockerfile'), 'utf8');
/** The commands of npm in the Dockerfile. */
const commands = (): string[] =>
  [...dockerfile().matchAll(/^RUN (npm .*)$/gm)].map(([, command = '']) => command);
const build = (command: string): Buffer =>
  execFileSync('sh', ['-c', command], { cwd: app, stdio: 'pipe', env: { ...process.env, ...NPM } });

const run = (...args: string[]): string =>
  execFileSync('npm', ['run', '--silent', ...args], { cwd: app, encoding: 'utf8', stdio: 'pipe' });

/** Starts a process of the project, and waits until it responds to a path. */
async function start(
  command: string,
  args: string[],
  url: string,
  options: object = {},
): Promise<ChildProcess> {
  const child = spawn(command, args, { cwd: app, stdio: ['ignore', 'pipe', 'pipe'], ...options });
  children.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (output += chunk));
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the process ended: ${output}`);
    const isUp = await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isUp) return child;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const ADD = `mutation ($name: String!, $text: String!, $picture: Upload) {
  addMessage(name: $name, text: $text, picture: $picture) { picture author { name } }
}`;

async function send(url: string, variables: object, file?: Blob): Promise<{ picture: string | null }> {
  const operations = JSON.stringify({ query: ADD, variables: { ...variables, picture: null } });
  const form = new FormData();
  form.set('operations', operations);
  form.set('map', '{"0":["variables.picture"]}');
  if (file !== undefined) form.set('0', file, 'picture.png');
  const headers = { 'content-type': 'application/json' };
  const init = file === undefined ? { headers, body: operations } : { body: form };
  const response = await fetch(`${url}/graphql`, { method: 'POST', ...init });
  const { data } = (await response.json()) as { data: { addMessage: { picture: string | null } } };
  return data.addMessage;
}

it('espalier init creates a project with a name that npm accepts and this version of espalier', () => {
  const { name, dependencies } = JSON.parse(readFileSync(join(app, 'package.json'), 'utf8'));
  expect(name).toBe('my-app');
  expect(dependencies.espalier).toMatch(/^file:/);
  expect(readdirSync(app)).toEqual(
    expect.arrayContaining(['.gitignore', '.dockerignore', 'Dockerfile', 'compose.yaml']),
  );
});

it('the types of the project are correct', () => {
  expect(run('check')).toBe('');
});

it('the tests of the project pass', () => {
  expect(run('test')).toMatch(/^# pass 5$/m);
});

it('npm run dev serves the page by Vite, which passes operations and sockets on to the server', async () => {
  const [port, clientPort] = [await freePort(), await freePort()];
  const env = { ...process.env, PORT: String(port) };
  // Without npx, whose children would survive it.
  const server = await start(
    process.execPath,
    ['--import', 'tsx', 'server/main.ts'],
    `http://localhost:${port}/health/ready`,
    {
      env,
    },
  );
  const url = `http://localhost:${clientPort}`;
  const vite = await start(
    process.execPath,
    ['node_modules/vite/bin/vite.js', '--port', String(clientPort)],
    url,
    { env },
  );
  expect(await (await fetch(url)).text()).toContain('/main.ts');
  expect(await (await fetch(`${url}/main.ts`)).text()).toContain('watchMessages');
  await expectLiveMessage(url, url);
  for (const child of [vite, server]) child.kill('SIGTERM');
});

/** A message that is sent to one server reaches the subscribers of another one, like a page of its origin. */
async function expectLiveMessage(sender: string, receiver: string): Promise<void> {
  const { origin } = new URL(receiver);
  class PageSocket extends WebSocket {
    constructor(address: string, protocols: string) {
      super(address, protocols, { origin });
    }
  }
  const client = createClient({
    url: `${receiver.replace('http', 'ws')}/graphql`,
    webSocketImpl: PageSocket,
    lazy: false,
    retryAttempts: 0,
  });
  const results = client.iterate({ query: 'subscription { messageAdded { text author { name } } }' });
  const first = results.next();
  // The server has the subscription when it responds to an operation that the client sent afterwards.
  for await (const _result of client.iterate({ query: '{ messages { id } }' }));
  // Redis confirms the channel to another process later, so the first messages may be too early.
  const sent: Promise<unknown>[] = [];
  const timer = setInterval(() => sent.push(send(sender, { name: 'Ada', text: 'live' })), 100);
  const { value } = await first;
  clearInterval(timer);
  // The servers end after the test: a request must not be open then.
  await Promise.all(sent);
  expect(value?.data).toEqual({ messageAdded: { text: 'live', author: { name: 'Ada' } } });
  await client.dispose();
}

describe('the built project', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
    for (const command of commands().slice(1)) build(command);
  });
  afterAll(() => redis.kill());

  /** Starts the command of the Dockerfile as a user that cannot write to the project, with a data directory. */
  async function startContainer(data: string): Promise<{ url: string; server: ChildProcess }> {
    const port = await freePort();
    const [program, ...args] = JSON.parse(String(/^CMD (.*)$/m.exec(dockerfile())?.[1]));
    const temporary = join(folder, `tmp-${port}`);
    for (const path of [data, temporary]) {
      mkdirSync(path, { recursive: true });
      chmodSync(path, 0o777);
    }
    const env = {
      PATH: process.env['PATH'],
      NODE_ENV: 'production',
      DATA_DIR: data,
      TMPDIR: temporary,
      REDIS_URL: redis.url,
      PORT: String(port),
    };
    const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
    const url = `http://localhost:${port}`;
    return { url, server: await start(program, args, `${url}/health/ready`, { env, ...user }) };
  }

  it('the Dockerfile runs as another user than root, with production dependencies only', () => {
    const text = dockerfile();
    expect(text.indexOf('USER node')).toBeGreaterThan(text.lastIndexOf('COPY'));
    expect(readdirSync(join(app, 'node_modules'))).not.toContain('vite');
    expect(readdirSync(join(app, 'dist'))).toEqual(['client', 'server']);
  });

  it('the health check of the Dockerfile fails when the server is not ready', async () => {
    const [, command] = /HEALTHCHECK .* CMD (\[.*\])$/m.exec(dockerfile()) ?? [];
    const [program, flag, script] = JSON.parse(String(command));
    const check = spawn(program, [flag, script.replace('3000', String(await freePort()))]);
    expect((await once(check, 'exit'))[0]).toBe(1);
  });

  it('two processes with a read-only project serve the page, pictures and live messages by Redis', async () => {
    for (const name of ['dist', '.']) chmodSync(join(app, name), 0o555);
    chmodSync(folder, 0o755);
    const data = join(folder, 'data');
    const [one, two] = [await startContainer(data), await startContainer(data)];

    const page = await fetch(one.url);
    expect(page.status).toBe(200);
    const [, script] = /src="([^"]+)"/.exec(await page.text()) ?? [];
    const asset = await fetch(new URL(String(script), one.url));
    expect(asset.headers.get('cache-control')).toContain('immutable');
    expect((await fetch(`${one.url}/some/page`, { headers: { accept: 'text/html' } })).status).toBe(200);

    await expectLiveMessage(one.url, two.url);
    const large = Buffer.concat([PNG, Buffer.alloc(1_000_000)]);
    const { picture } = await send(one.url, { name: 'Ada', text: 'Me' }, new Blob([large]));
    const served = await fetch(`${two.url}${picture}`);
    expect([served.headers.get('content-type'), (await served.arrayBuffer()).byteLength]).toEqual([
      'image/png',
      1_000_008,
    ]);
    const introspection = await fetch(`${one.url}/graphql?query={__schema{types{name}}}`);
    expect(introspection.ok && JSON.stringify(await introspection.json())).not.toContain('AddMessage');

    for (const { server } of [one, two]) {
      server.kill('SIGTERM');
      expect(await once(server, 'exit')).toEqual([0, null]);
    }
  });

  it('the server is not ready while Redis is away, but lives', async () => {
    const { url, server } = await startContainer(join(folder, 'data'));
    await redis.kill();
    const statusOf = async (path: string) => (await fetch(url + path)).status;
    while ((await statusOf('/health/ready')) !== 503) await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await statusOf('/health/live')).toBe(200);
    server.kill('SIGTERM');
    expect((await once(server, 'exit'))[0]).toBe(0);
  });
});

it('espalier init does not write into a folder that contains files', () => {
  writeFileSync(join(folder, 'before.txt'), 'text');
  const cli = join(app, 'node_modules/espalier/dist/cli.mjs');
  const { mtimeMs } = statSync(join(app, 'package.json'));
  expect(() => execFileSync(process.execPath, [cli, 'init', app], { stdio: 'pipe' })).toThrow(/is not empty/);
  expect(statSync(join(app, 'package.json')).mtimeMs).toBe(mtimeMs);
});
