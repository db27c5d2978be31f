/** @tags once */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toJavaScript } from '../javascript.ts';
import { root, snippets } from '../snippets.ts';

// A chat of the first blocks of docs/presence.md, as a reader puts them together.

const folder = join(root, 'artifacts/presence-guide');
const page = 'docs/presence.md';
const code = (index: number): string =>
  snippets('ts').filter((each) => each.page === page)[index]?.code ?? '';
const typeDefs = /^```graphql\n([\s\S]*?)^```/m.exec(readFileSync(join(root, page), 'utf8'))?.[1];

const MAIN = `
import { makeExecutableSchema } from '@graphql-tools/schema';
import { attachSubscriptions, createServer } from 'espalier';
import { inject, subscribe } from 'espalier/testing';
import express from 'express';
import { resolvers } from './resolvers.mjs';
import { serve } from './serve.mjs';

const graphql = serve(makeExecutableSchema({ typeDefs: ${JSON.stringify(typeDefs)}, resolvers }), (token) => {
  if (typeof token !== 'string') throw new Error('Who are you?');
  return { id: token, name: token.toUpperCase() };
});
const server = createServer(express().use('/graphql', graphql));
attachSubscriptions(server, graphql);
const query = 'subscription { viewersChanged(photo: "1") { joined { data { name } } left { id } } }';
const enter = (token) => subscribe(server, { query, connectionParams: { token } });
const seen = [];
const ada = await enter('ada');
// Her own arrival comes first.
for await (const { data } of ada) {
  const [joined] = data.viewersChanged.joined;
  const [left] = data.viewersChanged.left;
  seen.push(joined?.data.name ?? left?.id + ' left');
  if (seen.length === 1) globalThis.bob = await enter('bob');
  if (seen.length === 2) {
    const { data } = await inject(server, { query: '{ viewers(photo: "1") { id } }', headers: { authorization: 'ada' } });
    seen.push(data.viewers.map(({ id }) => id).sort().join());
    await globalThis.bob.return();
  }
  if (seen.length > 3) break;
}
console.log(JSON.stringify(seen));
process.exit();
`;

it('the chat of docs/presence.md shows who enters and who leaves, by the name of their token', () => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'resolvers.mjs'), toJavaScript(code(0)));
  writeFileSync(join(folder, 'serve.mjs'), toJavaScript(code(1)));
  writeFileSync(join(folder, 'main.mjs'), MAIN);
  const options = { cwd: folder, encoding: 'utf8', timeout: 30_000 } as const;
  const { stdout, stderr } = spawnSync(process.execPath, ['main.mjs'], options);
  expect([stdout.trim(), stderr]).toEqual([JSON.stringify(['ADA', 'BOB', 'ada,bob', 'bob left']), '']);
});
