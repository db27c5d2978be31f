import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { npm, pack, root, scratchFolder, type Tarball } from './tarball.ts';

const SUBPATHS = ['static', 'graphql', 'subscriptions', 'server', 'pubsub'];
const KIB = 1024;

const folder = scratchFolder();
let tarball: Tarball;

/** Runs a script in the folder where the package is installed and parses its output as JSON. */
function run(script: string, type: 'module' | 'commonjs'): unknown {
  const args = [`--input-type=${type}`, '--eval', script];
  return JSON.parse(execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8' }));
}

const install = (...what: string[]) =>
  npm(['install', '--ignore-scripts', '--prefer-offline', ...what], folder);

beforeAll(() => {
  tarball = pack(folder);
  writeFileSync(join(folder, 'package.json'), '{ "name": "consumer", "private": true }');
  install('--legacy-peer-deps', tarball.path, 'express@5');
}, 120_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the tarball', () => {
  const sizeOf = (prefix: string): number =>
    tarball.files.filter(({ path }) => path.startsWith(prefix)).reduce((sum, { size }) => sum + size, 0);

  it('the tarball contains the built files, LICENSE and README, and nothing else', () => {
    for (const { path } of tarball.files) {
      expect(path).toMatch(/^(package\.json|README\.md|LICENSE|CHANGELOG\.md|dist\/(esm|cjs|graphiql)\/.*)$/);
      expect(path).not.toMatch(/(^|\/)(test|tests|examples|bench|node_modules|\.[^/]+)\/|\.map$|\.tgz$/);
      if (/\/(esm|cjs)\//.test(path)) expect(path).toMatch(/(\.js|\.d\.ts|cjs\/package\.json)$/);
    }
    expect(tarball.files.map(({ path }) => path)).toEqual(expect.arrayContaining(['README.md', 'LICENSE']));
  });

  it('the tarball contains each module once as ESM and once as CommonJS', () => {
    const modules = (system: string): string[] =>
      tarball.files
        .map(({ path }) => path)
        .filter((path) => path.startsWith(`dist/${system}/`) && !path.endsWith('package.json'))
        .map((path) => path.slice(`dist/${system}/`.length));
    expect(modules('esm').length).toBeGreaterThan(100);
    expect(modules('esm')).toEqual(modules('cjs'));
  });

  it('the tarball stays below its size limits', () => {
    expect(tarball.size).toBeLessThan(2048 * KIB);
    expect(sizeOf('dist/esm/')).toBeLessThan(768 * KIB);
    expect(sizeOf('dist/graphiql/')).toBeLessThan(1600 * KIB);
  });

  it('the declarations import only graphql and Node', () => {
    const dist = join(folder, 'node_modules/espalier/dist/esm/middleware');
    const entries = ['index', ...SUBPATHS].map((name) => join(dist, `${name}.d.ts`));
    const outside = new Set<string>();
    const seen = new Set<string>();
    const follow = (file: string): void => {
      if (seen.has(file)) return;
      seen.add(file);
      const text = readFileSync(file, 'utf8');
      for (const match of text.matchAll(/(?:\bfrom\s+|\bimport\(|^import\s+)['"]([^'"]+)['"]/gm)) {
        const specifier = match[1] as string;
        if (specifier.startsWith('.'))
          follow(resolve(dirname(file), specifier.replace(/\.(ts|js)$/, '.d.ts')));
        else outside.add(specifier);
      }
    };
    entries.forEach(follow);
    expect([...outside].filter((name) => name !== 'graphql' && !name.startsWith('node:'))).toEqual([]);
    expect(outside).toContain('graphql');
  });
});

describe('an installation without graphql', () => {
  const serve = `
    const app = express().use('/files', staticFiles('.'));
    const server = app.listen(0, async () => {
      const response = await fetch('http://127.0.0.1:' + server.address().port + '/files/package.json');
      const loaded = Object.keys(require.cache).map((path) => path.split('node_modules/').pop());
      const heavy = loaded.filter((path) => /^(graphql|graphql-ws|ws|multer|busboy)\\//.test(path));
      console.log(JSON.stringify([response.status, response.headers.has('etag'), heavy, loaded.length > 0]));
      server.close();
      server.closeAllConnections();
    });`;

  it('espalier/static serves files after require without graphql', () => {
    const load = `const express = require('express'); const { staticFiles } = require('espalier/static');`;
    expect(run(load + serve, 'commonjs')).toEqual([200, true, [], true]);
  });

  it('espalier/static serves files after import without graphql', () => {
    const load = `import express from 'express'; import { staticFiles } from 'espalier/static';
      import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`;
    expect(run(load + serve, 'module')).toEqual([200, true, [], true]);
  });

  it('importing espalier/graphql without graphql fails with ERR_MODULE_NOT_FOUND', () => {
    const script = `import('espalier').catch((error) => console.log(JSON.stringify([error.code, error.message])))`;
    expect(run(script, 'module')).toEqual([
      'ERR_MODULE_NOT_FOUND',
      expect.stringContaining("package 'graphql'"),
    ]);
  });

  it('espalier/server creates servers without graphql', () => {
    const script = `console.log(typeof require('espalier/server').createServer(() => {}).listen === 'function')`;
    expect(run(script, 'commonjs')).toBe(true);
  });
});

describe('npm install espalier graphql', () => {
  const empty = scratchFolder();
  afterAll(() => rmSync(empty, { recursive: true, force: true }));

  it('npm install espalier graphql works without Express', () => {
    writeFileSync(join(empty, 'package.json'), '{ "name": "consumer", "private": true }');
    npm(['install', '--ignore-scripts', '--prefer-offline', tarball.path, 'graphql@16'], empty);
    expect(readdirSync(join(empty, 'node_modules'))).not.toContain('express');
    const script = `import('espalier').then((all) => console.log(Object.keys(all).length))`;
    const output = execFileSync(process.execPath, ['--eval', script], { cwd: empty, encoding: 'utf8' });
    expect(Number(output)).toBeGreaterThan(5);
  }, 120_000);
});

describe('an installation with graphql', () => {
  beforeAll(() => {
    install('--legacy-peer-deps', `graphql@${process.env['GRAPHQL_MAJOR'] ?? 16}`);
  }, 120_000);

  it('each entry point has exactly the documented exports', () => {
    const script = `console.log(JSON.stringify(Object.keys(require('espalier')).sort()))`;
    const names = ['Method', 'Upload', 'attachSubscriptions', 'createServer', 'graphqlHTTP', 'staticFiles'];
    expect(run(script, 'commonjs')).toEqual(names);
    const imported = `import * as all from 'espalier'; console.log(JSON.stringify(Object.keys(all).sort()))`;
    expect(run(imported, 'module')).toEqual(names);
  });

  it.each(['espalier', ...SUBPATHS.map((name) => `espalier/${name}`)])(
    'import and require load one instance of %s',
    (entry) => {
      const script = `
      import { createRequire } from 'node:module';
      import * as imported from '${entry}';
      const required = createRequire(import.meta.url)('${entry}');
      console.log(JSON.stringify(Object.keys(imported).map((name) => imported[name] === required[name])));`;
      const same = run(script, 'module') as boolean[];
      expect(same.length).toBeGreaterThan(0);
      expect(same.every(Boolean)).toBe(true);
    },
  );

  it('tools without support for ES modules get the CommonJS build', () => {
    const { name } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const script = `
      const path = require('node:path').dirname(require.resolve('${name}/package.json'));
      console.log(JSON.stringify(Object.keys(require(path + '/dist/cjs/middleware/index.js')).length))`;
    expect(run(script, 'commonjs')).toBe(6);
  });

  it('the installed tarball executes queries and serves GraphiQL', () => {
    const script = `
      import express from 'express';
      import { buildSchema } from 'graphql';
      import { createServer, graphqlHTTP } from 'espalier';
      const app = express().use('/graphql', graphqlHTTP(buildSchema('type Query { hello: String }'), { rootValue: { hello: 'world' } }));
      const server = createServer(app).listen(0, async () => {
        const url = 'http://127.0.0.1:' + server.address().port + '/graphql';
        const { data } = await (await fetch(url + '?query={hello}')).json();
        const page = await (await fetch(url, { headers: { accept: 'text/html' } })).text();
        const script = /<script[^>]+src="([^"]+)"/.exec(page)[1];
        const asset = await fetch(new URL(script, url + '/'));
        console.log(JSON.stringify([data, asset.status, asset.headers.get('content-type')]));
        server.close();
        server.closeAllConnections();
      });`;
    expect(run(script, 'module')).toEqual([{ hello: 'world' }, 200, expect.stringContaining('javascript')]);
  });
});
