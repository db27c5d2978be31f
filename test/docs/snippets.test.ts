/** @tags once slow */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import WebSocket from 'ws';
import { toJavaScript } from '../javascript.ts';
import { docstringExamples, root, type Snippet, snippets } from '../snippets.ts';

const folder = join(root, 'artifacts', 'snippets');
const all = [...snippets('ts'), ...snippets('ts after'), ...docstringExamples()];
const stopping = all.filter(({ code }) => code.includes("'SIGTERM'") && code.includes('.listen('));
const others = all.filter((snippet) => !stopping.includes(snippet));
const running = new Set<ChildProcess>();

/** Makes every server listen on a free port of this machine, and keeps it for the checks. */
const SETUP = `
globalThis.WebSocket ??= require('ws'); // as in browsers, and in Node from version 22
const net = require('node:net');
const listen = net.Server.prototype.listen;
globalThis.servers = [];
net.Server.prototype.listen = function (port, ...rest) {
  globalThis.servers.push(this);
  this.once('listening', () => process.send?.(this.address().port));
  return listen.call(this, { port: 0, host: '127.0.0.1' }, ...rest.filter((each) => typeof each === 'function'));
};
`;

/** Imports snippets one after the other, sends a request to each server that they start, and reports failures. */
const RUN = `
const failures = [];
for (const name of process.argv.slice(2)) {
  globalThis.servers.length = 0;
  try {
    await import('./' + name + '.mjs');
    for (const server of [...globalThis.servers]) {
      for (let turn = 0; turn < 100 && !server.listening; turn++) await new Promise(setImmediate);
      if (!server.listening) continue; // the snippet has closed it
      if ('requestTimeout' in server && !('setSecureContext' in server) && server.listenerCount('request') > 0) {
        const url = 'http://127.0.0.1:' + server.address().port;
        const response = await fetch(url + '/graphql?query={__typename}');
        if (response.status >= 500) failures.push(name + ': status ' + response.status);
      }
      server.closeAllConnections?.();
      server.close();
    }
  } catch (error) {
    failures.push(name + ': ' + error.stack);
  }
}
process.stdout.write('\\n' + JSON.stringify(failures));
process.exit();
`;

beforeAll(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'usage.json'), 'no counts');
  for (const name of [
    'public',
    'dist',
    'uploads',
    'site',
    'apps',
    'previews',
    'videos',
    'docs',
    'guide',
    'data/uploads',
    'dist/app/browser',
  ]) {
    mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, name, 'index.html'), '<!doctype html><title>Home</title>');
  }
  for (const name of ['key.pem', 'cert.pem'])
    cpSync(join(root, 'test/fixtures/tls', name), join(folder, name));
  writeFileSync(join(folder, 'setup.cjs'), SETUP);
  writeFileSync(join(folder, 'run.mjs'), RUN);
  for (const { name, code } of all) {
    writeFileSync(join(folder, `${name}.mts`), `${code}\nexport {};\n`);
    writeFileSync(join(folder, `${name}.mjs`), toJavaScript(code));
  }
});

afterAll(() => {
  for (const child of running) child.kill('SIGKILL');
});

function start(...words: string[]): ChildProcess {
  const child = spawn(process.execPath, ['--require', './setup.cjs', ...words], {
    cwd: folder,
    env: { ...process.env, NODE_ENV: 'development' },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/**
 * Starts a server, sends it a request, opens a socket, begins a request that never ends and sends SIGTERM. Returns how
 * the process ended. It cannot add to `usage.json`, which is not JSON.
 */
async function stop({ name, code }: Snippet): Promise<unknown[]> {
  const child = start(`${name}.mjs`);
  let output = '';
  child.stderr?.on('data', (chunk) => (output += chunk));
  const exit = once(child, 'exit');
  const [port] = await Promise.race([once(child, 'message'), exit]);
  if (child.exitCode !== null) return [name, ...(await exit), output];
  const response = await fetch(`http://127.0.0.1:${port}/graphql?query={__typename}`);
  await response.text();
  if (code.includes('attachSubscriptions')) {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws');
    await once(socket, 'open');
  }
  const stalled = connect(port, '127.0.0.1');
  stalled.on('error', () => undefined);
  stalled.write(
    'POST /graphql HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  );
  await once(stalled, 'connect');
  child.kill('SIGTERM');
  // The file of the option "usage" is the only one that cannot be written.
  return [name, ...(await exit), output.includes("usage.json: Unexpected token 'o'") ? '' : output];
}

/** Runs `tsc` over the snippets with the settings of the tests. */
function compile(): string {
  const config = {
    extends: '../../test/tsconfig.json',
    compilerOptions: {
      rootDir: '../..',
      noUnusedLocals: false,
      noUnusedParameters: false,
      paths: { espalier: ['../../middleware/index.ts'], 'espalier/*': ['../../middleware/*.ts'] },
    },
    include: all.map(({ name }) => `${name}.mts`).concat('../../src/**/*.d.ts'),
    exclude: [],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  return spawnSync(process.execPath, [tsc, '-p', folder], { cwd: root, encoding: 'utf8' }).stdout;
}

describe('the TypeScript of README, docs and docstrings', () => {
  it('every TypeScript snippet compiles', () => {
    expect(all.length).toBeGreaterThan(30);
    expect(compile()).toBe('');
  });

  it('every TypeScript snippet runs, and its server responds', async () => {
    const child = start('run.mjs', ...others.map(({ name }) => name));
    let output = '';
    child.stdout?.on('data', (chunk) => (output += chunk));
    child.stderr?.on('data', (chunk) => (output += chunk));
    await once(child, 'close');
    expect(output.split('\n').at(-1)).toBe('[]');
  });

  it('the process of every snippet with a SIGTERM listener exits with 0, with a socket open, a request that never ends and no file that it may write', async () => {
    expect(stopping.length).toBeGreaterThan(3);
    expect(await Promise.all(stopping.map(stop))).toEqual(stopping.map(({ name }) => [name, 0, null, '']));
    // A process per snippet, all at once: a minute is not enough on a busy machine.
  }, 180_000);
});
