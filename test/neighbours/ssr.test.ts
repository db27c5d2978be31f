/** @tags once */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { snippets } from '../snippets.ts';

// The servers of docs/frameworks.md that render pages, with a build of Vite and with one of React Router.

jest.setTimeout(60_000);

const root = resolve(__dirname, '../..');
const folder = join(__dirname, 'artifacts', 'ssr');
const running = new Set<ChildProcess>();
const ANY_PORT = `
const net = require('node:net');
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  this.once('listening', () => process.send(this.address().port));
  return listen.call(this, { port: 0, host: '127.0.0.1' }, ...rest);
};
`;
/** A build with one route that responds to everything. */
const ROUTER_BUILD = `
const loader = ({ request }) => new Response('rendered ' + new URL(request.url).pathname);
const manifest = { id: 'pages', path: '*', hasLoader: true };
export const entry = { module: { default: () => new Response('unused') } };
export const routes = { pages: { id: 'pages', path: '*', module: { loader } } };
export const assets = { entry: { module: '', imports: [] }, routes: { pages: manifest }, url: '', version: '1' };
export const assetsBuildDirectory = 'build/client';
export const basename = '/';
export const publicPath = '/';
export const future = {};
export const prerender = [];
export const routeDiscovery = { mode: 'initial' };
export const isSpaMode = false;
export const ssr = true;
`;

function write(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

beforeAll(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'node_modules', '@react-router'), { recursive: true });
  symlinkSync(root, join(folder, 'node_modules', 'espalier'));
  for (const name of ['@react-router/express', '@react-router/node', 'react-router', 'react'])
    symlinkSync(join(__dirname, 'recipes/node_modules', name), join(folder, 'node_modules', name));
  write({ 'package.json': '{ "type": "module" }', 'port.cjs': ANY_PORT });
});

afterAll(() => {
  for (const child of running) child.kill();
});

/** Starts the example of a section, and returns its origin. */
async function start(name: string, code: string | undefined): Promise<string> {
  write({ [name]: code ?? '' });
  const child = spawn(process.execPath, ['--require', './port.cjs', '--import', 'tsx', name], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  running.add(child);
  let output = '';
  child.stderr?.on('data', (chunk) => (output += chunk));
  const port = await new Promise<unknown>((done, fail) => {
    child.once('message', done);
    child.once('exit', (status) => fail(new Error(`ended with ${status}: ${output}`)));
  });
  return `http://127.0.0.1:${port}`;
}

const get = async (url: string) => {
  const response = await fetch(url);
  return [response.status, response.headers.get('cache-control'), await response.text()];
};
const QUERY = '/graphql?query={hello}';
const HELLO = [200, 'no-store', '{"data":{"hello":"world"}}'];

it('the server with Vite renders pages into the template, and serves files and the API', async () => {
  write({
    'index.html':
      '<!doctype html><div id="app"><!--app--></div><script type="module" src="/src/client.js"></script>',
    'src/client.js': 'document.title = "client";',
    'src/entry-server.js': 'export const render = async (url) => "<p>rendered " + url + " $&</p>";',
  });
  const vite = join(__dirname, 'node_modules/vite/bin/vite.js');
  // The commands of the page, for a project in JavaScript.
  for (const words of ['--outDir dist/client', '--ssr src/entry-server.js --outDir dist/server']) {
    const args = [vite, 'build', ...words.split(' ')];
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, expect.any(String)]);
  }
  const [snippet] = snippets('ts ssr');
  const origin = await start('vite.mts', snippet?.code);
  const [status, , html] = await get(`${origin}/some/page?a=1`);
  expect([status, html]).toEqual([200, expect.stringContaining('<p>rendered /some/page?a=1 $&</p>')]);
  expect((await get(`${origin}/`))[2]).toContain('<p>rendered / $&</p>');
  const script = /src="([^"]+)"/.exec(String(html))?.[1] ?? '';
  expect(await get(origin + script)).toEqual([
    200,
    'public, max-age=31536000, immutable',
    expect.stringContaining('client'),
  ]);
  expect(await get(origin + QUERY)).toEqual(HELLO);
});

it('the server with React Router passes on what is neither a file nor the API', async () => {
  write({ 'build/server/index.js': ROUTER_BUILD, 'build/client/assets/app-1a2b3c4d.js': 'run();' });
  const code = snippets('ts neighbours').find((each) => each.code.includes('@react-router/express'))?.code;
  const origin = await start('router.mts', code);
  const [status, , page] = await get(`${origin}/some/page`);
  expect([status, page]).toEqual([200, 'rendered /some/page']);
  expect(await get(`${origin}/assets/app-1a2b3c4d.js`)).toEqual([
    200,
    'public, max-age=31536000, immutable',
    'run();',
  ]);
  expect(await get(origin + QUERY)).toEqual(HELLO);
});
