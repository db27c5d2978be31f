import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { runTopic } from './harness.mjs';

const cwd = fileURLToPath(new URL('.', import.meta.url));
const PRINT = 'const { user, system } = process.cpuUsage(); process.stdout.write(String(user + system));';

/** The CPU time of a Node process that runs a script, in microseconds. */
function cpuOf(script, type) {
  const program = process.env.BENCH_NODE ?? process.execPath;
  const args = [`--input-type=${type}`, '--eval', `${script};${PRINT}`];
  return Number(execFileSync(program, args, { cwd, encoding: 'utf8' }));
}

/** A server that starts two processes per request, with and without the import, and counts the difference as its CPU time. */
const importing = (specifier, type) => async () => {
  const script = type === 'module' ? `await import('${specifier}')` : `require('${specifier}')`;
  let spent = 0;
  const server = createServer((_req, res) => {
    spent += cpuOf(script, type) - cpuOf('', type);
    res.end('imported');
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {
    port: server.address().port,
    cpu: () => spent,
    close: () => new Promise((done) => server.close(done)),
  };
};

const SPECIFIERS = ['espalier/static', 'espalier', 'serve-static', 'sirv', 'express', 'graphql'];

export const topic = {
  name: 'import',
  title: 'Import cost',
  about:
    'The CPU time of a Node process that imports a package, minus that of a process that imports nothing. ' +
    '"import" is an ES module, "require" a CommonJS module.',
  packages: ['express', 'serve-static', 'sirv', 'graphql'],
  ratios: [],
  contestants: Object.fromEntries(
    SPECIFIERS.flatMap((name) => [
      [`import ${name}`, importing(name, 'module')],
      [`require ${name}`, importing(name, 'commonjs')],
    ]),
  ),
  loads: [
    {
      name: 'import and require',
      unit: 'import',
      requests: [{ path: '/' }],
      connections: 1,
      count: 20,
      warmup: 2,
      expect: { status: 200, body: 'imported' },
    },
  ],
};

await runTopic(import.meta.url, topic);
