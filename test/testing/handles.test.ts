/** @tags node-lines graphql slow */
import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';

const root = resolve(__dirname, '../..');

/** A script that uses every part of the client. No test runner keeps its process alive, and nothing may. */
const SCRIPT = `
import { Server } from 'node:net';
import { attachSubscriptions, createServer, graphqlHTTP, staticFiles } from 'espalier';
import { inject, subscribe } from 'espalier/testing';
import express from 'express';
import { buildSchema } from 'graphql';

Server.prototype.listen = () => { throw new Error('a server listens') };
Server.prototype.close = () => { throw new Error('a server is closed') };
const schema = buildSchema('type Query { hello: String } type Subscription { never: Int, once: Int }');
const rootValue = {
  hello: 'world',
  never: async function* () { await new Promise(() => undefined) },
  once: async function* () { yield { once: 1 } },
};
const handler = graphqlHTTP(schema, { rootValue });
const app = express().use('/graphql', handler).use(staticFiles('test'));
const server = createServer(app);
attachSubscriptions(server, handler);
const resources = () => process.getActiveResourcesInfo().filter((name) => !/^(TTY|Pipe|Immediate|TCP|Timeout)/.test(name));
const sockets = () => process.getActiveResourcesInfo().filter((name) => /^TCP/.test(name));

for (let round = 0; round < 20; round++) {
  for (const target of [handler, app, server]) await inject(target, { query: '{ hello }' });
  await inject(app, { path: '/package.json' });
  await inject(app, { query: '{ hello }', variables: { file: new File(['x'], 'x') } });
  for (const target of [handler, server]) {
    for await (const _result of await subscribe(target, { query: 'subscription { once }' }));
    for await (const _result of await subscribe(target, { query: 'subscription { once }' })) break;
    const controller = new AbortController();
    const { signal } = controller;
    const results = await subscribe(target, { query: 'subscription { never }', signal });
    const rejected = results.next().catch((error) => error.name);
    controller.abort();
    if (await rejected !== 'AbortError') throw new Error(await rejected);
  }
}
// One subscription stays open: it must not keep the process alive either.
await subscribe(server, { query: 'subscription { never }' });
// The files of modules that were loaded last may still be open.
for (let i = 0; i < 100 && resources().length > 0; i++) await new Promise((done) => setTimeout(done, 20));
console.log(JSON.stringify([sockets(), resources()]));
`;

it('inject and subscribe open no socket, and leave nothing that keeps the process alive', () => {
  const env = { ...process.env, TSX_TSCONFIG_PATH: join(root, 'test/tsconfig.json'), NODE_ENV: 'test' };
  const args = ['--import', 'tsx', '--input-type=module', '--eval', SCRIPT];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, {
    cwd: root,
    env,
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect([status, stderr]).toEqual([0, '']);
  expect(JSON.parse(stdout)).toEqual([[], []]);
}, 70_000);

it('espalier/testing loads neither graphql, ws nor the rest of the package before it needs them', () => {
  const script = `
    const { inject } = await import('espalier/testing');
    const { text } = await inject((req, res) => res.end('ok'));
    const loaded = Object.keys((await import('node:module')).default._cache);
    console.log(JSON.stringify([text, loaded.filter((path) => /node_modules.(graphql|ws|graphql-ws)./.test(path))]));`;
  const env = { ...process.env, TSX_TSCONFIG_PATH: join(root, 'test/tsconfig.json') };
  const args = ['--import', 'tsx', '--input-type=module', '--eval', script];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, env, encoding: 'utf8' });
  expect([stderr, stdout && JSON.parse(stdout)]).toEqual(['', ['ok', []]]);
});
