/** @tags once */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { atEnd } from '../kit.ts';
import { freePort } from '../programs.ts';
import { root } from '../snippets.ts';

// The examples of the first page of the site, as they are in site/home.md.

const home = readFileSync(join(root, 'site/home.md'), 'utf8');
const examples = [...home.matchAll(/^## (\w+)\n\n```js\n([\s\S]*?)```/gm)].map(
  ([, name = '', code = '']) => ({
    name,
    code,
  }),
);
const PATHS: Readonly<Record<string, [path: string, text: string]>> = {
  Files: ['/', 'Hello files'],
  GraphQL: ['/graphql?query={hello}', 'world'],
  Live: ['/graphql?query={__typename}', 'Query'],
};

it('the first page of the site has an example of each part', () => {
  expect(examples.map(({ name }) => name)).toEqual(Object.keys(PATHS));
});

it.each(examples)('the example "$name" of the first page runs as it is', async ({ name, code }) => {
  const [path, text] = PATHS[name] ?? ['', ''];
  const port = await freePort();
  const folder = join(root, 'artifacts/home', name);
  mkdirSync(join(folder, 'public'), { recursive: true });
  writeFileSync(join(folder, 'public/index.html'), 'Hello files');
  writeFileSync(join(folder, 'app.mjs'), code.replace('listen(3000)', `listen(${port})`));
  const child = spawn(process.execPath, ['app.mjs'], {
    cwd: folder,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  atEnd(() => child.kill());
  let response: Response | undefined;
  while (response === undefined && child.exitCode === null) {
    response = await fetch(`http://localhost:${port}${path}`).catch(() => undefined);
  }
  expect([response?.status, await response?.text()]).toEqual([200, expect.stringContaining(text)]);
});
