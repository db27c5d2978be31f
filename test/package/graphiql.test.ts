/** @tags once slow */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pack, root, scratchFolder, type Tarball, unpack } from '../tarball.ts';

const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Requests the page and then its script, like a browser. */
const ASK = `
const handler = graphqlHTTP(buildSchema('type Query { hello: String }'));
const server = createServer((req, res) => handler(req, res)).listen(0, '127.0.0.1', async () => {
  const base = 'http://127.0.0.1:' + server.address().port + '/graphql';
  const page = await (await fetch(base, { headers: { accept: 'text/html' } })).text();
  const file = new URL(/src="([^"]+)"/.exec(page)[1], base);
  const script = await fetch(file, { headers: { 'accept-encoding': 'br' } });
  console.log(script.status, script.headers.get('content-encoding'), (await script.text()).includes('import'));
  server.close();
});`;

describe('the packed tarball', () => {
  const folder = scratchFolder();
  let packed: Tarball;

  beforeAll(() => {
    packed = pack();
    const modules = join(folder, 'node_modules');
    unpack(packed, folder);
    for (const name of [...Object.keys(dependencies), 'graphql']) {
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(join(root, 'node_modules', name), join(modules, name));
    }
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('the tarball contains the files of GraphiQL, the manifest and the notices, but no sources', () => {
    const paths = packed.files.map(({ path }) => path);
    for (const path of paths.filter((path) => path.startsWith('dist/graphiql/'))) {
      expect(path).toMatch(/\/(?:[\w.-]+\.cjs|manifest\.json|THIRD-PARTY-NOTICES\.txt)$/);
    }
    expect(paths.filter((path) => /graphiql\/app\/|\.tsx$/.test(path))).toEqual([]);
  });

  it.each([
    [
      'import',
      'main.mjs',
      `import { createServer } from 'node:http';
import { graphqlHTTP } from 'espalier/graphql';
import { buildSchema } from 'graphql';`,
    ],
    [
      'require',
      'main.cjs',
      `const { createServer } = require('node:http');
const { graphqlHTTP } = require('espalier/graphql');
const { buildSchema } = require('graphql');`,
    ],
  ])('the package serves GraphiQL when loaded with %s', (_how, name, load) => {
    writeFileSync(join(folder, name), load + ASK);
    const output = execFileSync(process.execPath, [name], { cwd: folder, encoding: 'utf8' });
    expect(output).toBe('200 br true\n');
  });
});
