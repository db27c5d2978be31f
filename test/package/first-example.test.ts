/** @tags once slow */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { nodeOf } from '../programs.ts';
import { npm, pack, root, scratchFolder } from '../tarball.ts';
import { TEST_ALL } from '../test-all.ts';

// The first example of README.md, in an empty folder with the packages that npm installs today.

jest.setTimeout(180_000);

const text = readFileSync(join(root, 'README.md'), 'utf8');
const [, packages = ''] = /^```sh\nnpm install (.*)\n```$/m.exec(text) ?? [];
const [, name = '', code = ''] = /^```js (\S+)\n([\s\S]*?)^```$/m.exec(text) ?? [];
const [, command = ''] = /^Save this as `\S+` and run `(.*)`:$/m.exec(text) ?? [];
/** Makes the server listen on a free port of this machine, and sends it to the parent process. */
const LISTEN = `const { Server } = require('node:net');
const { listen } = Server.prototype;
Server.prototype.listen = function () {
  const port = Number(process.env.PORT ?? 0);
  return listen.call(this, port, '127.0.0.1', () => process.send(this.address().port));
};`;

const folder = scratchFolder();
let child: ChildProcess | undefined;

beforeAll(() => {
  const tarball = pack();
  npm(['init', '-y'], folder);
  npm(['install', '--prefer-offline', ...packages.replace('espalier', tarball.path).split(' ')], folder);
  writeFileSync(join(folder, name), code);
  writeFileSync(join(folder, 'listen.cjs'), LISTEN);
});
afterEach(() => child?.kill());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('README.md names the file of its first example and the command that runs it', () => {
  expect([packages, name, command]).toEqual(['espalier express graphql', 'server.mjs', `node ${name}`]);
});

const here = Number(process.versions.node.split('.')[0]);

it.each(TEST_ALL ? [20, 22, 24, 26] : [here])(
  'the first example of README.md serves pages, GraphiQL, a query and a subscription on Node %i',
  async (line) => {
    child = spawn(line === here ? process.execPath : nodeOf(line), ['--require', './listen.cjs', name], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const [port] = await once(child, 'message');
    const url = `http://127.0.0.1:${port}`;
    writeFileSync(join(folder, 'public/index.html'), '<!doctype html><title>Home</title>');
    expect(await (await fetch(`${url}/`)).text()).toContain('Home');
    const page = await fetch(`${url}/graphql`, { headers: { accept: 'text/html' } });
    expect(await page.text()).toContain('<title>GraphiQL</title>');
    const response = await fetch(`${url}/graphql?query={hello}`);
    expect(await response.json()).toEqual({ data: { hello: 'world' } });
    const client = createClient({ url: `${url.replace('http', 'ws')}/graphql`, webSocketImpl: WebSocket });
    const counts: unknown[] = [];
    for await (const { data } of client.iterate({ query: 'subscription { countdown(from: 3) }' })) {
      counts.push(data?.countdown);
    }
    expect(counts).toEqual([3, 2, 1, 0]);
    await client.dispose();
  },
);

it('the first example of README.md ends with the error and announces no URL if its port is in use', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  child = spawn(process.execPath, ['--require', './listen.cjs', name], {
    cwd: folder,
    env: { ...process.env, PORT: `${port}` },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => (output += data));
  const [code] = await once(child, 'close');
  other.close();
  expect([code, output]).toEqual([1, expect.stringContaining('EADDRINUSE')]);
  expect(output).not.toContain('localhost:3000');
});
