/** @tags once slow */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { npm, pack, root, scratchFolder, type Tarball } from '../tarball.ts';

const SUBPATHS = [
  'static',
  'graphql',
  'subscriptions',
  'server',
  'pubsub',
  'sources',
  'uploads',
  'testing',
  'otel',
  'inspect',
  'cache',
  'auth',
  'mcp',
  'postgres',
  'presence',
];
const KIB = 1024;

const folder = scratchFolder();
let tarball: Tarball;

/** Runs a script in a folder where the package is installed, and parses its output as JSON. */
function runIn(cwd: string, script: string, type: 'module' | 'commonjs', ...flags: string[]): unknown {
  const args = [...flags, `--input-type=${type}`, '--eval', script];
  return JSON.parse(execFileSync(process.execPath, args, { cwd, encoding: 'utf8' }));
}

const run = (script: string, type: 'module' | 'commonjs') => runIn(folder, script, type);

function install(cwd: string, ...what: string[]): void {
  writeFileSync(join(cwd, 'package.json'), '{ "name": "consumer", "private": true }');
  npm(['install', '--ignore-scripts', '--prefer-offline', ...what], cwd);
}

beforeAll(() => {
  tarball = pack();
  // graphql is a peer of graphql-ws, so npm installs it otherwise.
  install(folder, '--omit=peer', tarball.path, 'express@5');
}, 120_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the tarball', () => {
  it('the tarball has the entries, their shared modules, their declarations and GraphiQL, and nothing else', () => {
    const names = ['index', ...SUBPATHS, 'client'];
    const shared = [
      'http',
      'static',
      'server',
      'graphql',
      'cache',
      'packages',
      'pubsub',
      'streams',
      'uploads',
    ];
    // The code of options, for the CommonJS modules and for the ES modules.
    const optional = [
      'auth',
      'cache',
      'clients',
      'cost',
      'documents',
      'idempotency',
      'keep',
      'listing',
      'pages',
      'replaced',
      'usage',
    ];
    const expected = ['mjs', 'cjs'].flatMap((extension) => [
      ...names.flatMap((name) => [`${name}.${extension}`, `${name}.d.${extension.replace('js', 'ts')}`]),
      ...shared.map((name) => `lib/${name}.${extension}`),
      ...optional.map((name) => `lib/optional/${name}.${extension === 'cjs' ? 'cjs' : 'make.cjs'}`),
      // The helpers of the modules that are loaded on demand.
      ...(extension === 'cjs' ? ['rolldown-runtime.cjs'] : ['cli.mjs']),
      // Parts of the command, which an entry never loads.
      ...(extension === 'cjs'
        ? ['template.cjs']
        : ['check-documents', 'check-schema', 'read-schema'].map((name) => `lib/cli-${name}.mjs`)),
      ...['types', 'graphql-types'].map((name) => `lib/${name}.d.${extension.replace('js', 'ts')}`),
    ]);
    const paths = tarball.files.map(({ path }) => path).filter((path) => !path.startsWith('dist/graphiql/'));
    expect(paths.filter((path) => path.startsWith('dist/')).sort()).toEqual(
      expected.map((path) => `dist/${path}`).sort(),
    );
    expect(paths.filter((path) => !path.startsWith('dist/')).sort()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'package.json',
    ]);
  });

  it('espalier/client imports nothing, and works without Node', () => {
    for (const extension of ['mjs', 'cjs']) {
      const file = `dist/client.${extension}`;
      const code = readFileSync(join(folder, 'node_modules/espalier', file), 'utf8');
      expect(code).not.toMatch(/\bimport\b|\brequire\b|\bprocess\b|\bBuffer\b/);
    }
    const types = readFileSync(join(folder, 'node_modules/espalier/dist/client.d.mts'), 'utf8');
    expect(types).not.toMatch(/^import|\bfrom '/m);
  });

  it('the files of GraphiQL have at most 2 MiB', () => {
    const sizes = tarball.files
      .filter(({ path }) => path.startsWith('dist/graphiql/'))
      .map(({ size }) => size);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(2048 * KIB);
  });

  /** The packages and modules of Node that the declarations of an entry import. */
  function importsOf(entry: string): Set<string> {
    const outside = new Set<string>();
    const seen = new Set<string>();
    const follow = (file: string): void => {
      if (seen.has(file)) return;
      seen.add(file);
      for (const match of readFileSync(file, 'utf8').matchAll(
        /(?:\bfrom\s+|\bimport\(|^import\s+)['"]([^'"]+)['"]/gm,
      )) {
        const specifier = match[1] as string;
        if (!specifier.startsWith('.')) outside.add(specifier);
        else follow(resolve(dirname(file), specifier.replace(/\.([cm])js$/, '.d.$1ts')));
      }
    };
    follow(join(folder, 'node_modules/espalier/dist', entry));
    return outside;
  }

  it.each(['d.mts', 'd.cts'])(
    'the declarations (.%s) import graphql where the entry needs it, and Node',
    (extension) => {
      const packagesOf = (name: string): string[] =>
        [...importsOf(`${name}.${extension}`)].filter((specifier) => !specifier.startsWith('node:'));
      for (const name of ['index', 'graphql', 'subscriptions'])
        expect([name, packagesOf(name)]).toEqual([name, ['graphql']]);
      for (const name of ['static', 'server', 'pubsub', 'testing', 'otel', 'inspect', 'postgres', 'uploads'])
        expect([name, packagesOf(name)]).toEqual([name, []]);
    },
  );

  it('the declarations have the same names as the modules, and their documentation', () => {
    const text = readFileSync(join(folder, 'node_modules/espalier/dist/static.d.mts'), 'utf8');
    expect(text).toMatch(/^ {2}staticFiles,$/m);
    expect(text).toMatch(/^ {2}type StaticFilesOptions,$/m);
    const types = readFileSync(join(folder, 'node_modules/espalier/dist/lib/types.d.mts'), 'utf8');
    expect(types).toMatch(/\* @param dir - .*[\s\S]*?\*\/\nexport declare function staticFiles\(/);
  });
});

describe('an installation without graphql', () => {
  const serve = `
    const app = express().use('/files', staticFiles('.'));
    const server = app.listen(0, async () => {
      const response = await fetch('http://127.0.0.1:' + server.address().port + '/files/package.json');
      const loaded = Object.keys(require.cache).map((path) => path.split('node_modules/').pop());
      const unwanted = loaded.filter((path) => /^(graphql|graphql-ws|ws|multer|busboy)\\//.test(path));
      console.log(JSON.stringify([response.status, response.headers.has('etag'), unwanted, loaded.length > 0]));
      server.close();
      server.closeAllConnections();
    });`;

  it('npm install --omit=peer espalier express does not install graphql', () => {
    expect(existsSync(join(folder, 'node_modules/express'))).toBe(true);
    expect(existsSync(join(folder, 'node_modules/graphql'))).toBe(false);
  });

  it('espalier/static serves files without graphql when it is required', () => {
    const load = `const express = require('express'); const { staticFiles } = require('espalier/static');`;
    expect(run(load + serve, 'commonjs')).toEqual([200, true, [], true]);
  });

  it('espalier/static serves files without graphql when it is imported', () => {
    const load = `import express from 'express'; import { staticFiles } from 'espalier/static';
      import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`;
    expect(run(load + serve, 'module')).toEqual([200, true, [], true]);
  });

  it('espalier without graphql names the missing package when it is imported', () => {
    const script = `import('espalier').catch((error) => console.log(JSON.stringify([error.code, error.message])))`;
    expect(run(script, 'module')).toEqual([
      'ERR_MODULE_NOT_FOUND',
      expect.stringContaining("package 'graphql'"),
    ]);
  });

  it('createPubSub without a client for a URL names the command that installs it, in the warning and the rejection', () => {
    const script = `import { createPubSub } from 'espalier/pubsub';
      const warned = new Promise((found) => process.once('warning', ({ message }) => found(message)));
      const events = createPubSub({ transport: 'redis://localhost' });
      const rejected = events.publish('a', 1).catch(({ message }) => message);
      console.log(JSON.stringify(await Promise.all([warned, rejected])));
      await events.close();`;
    const message =
      'createPubSub: a URL of a Redis needs the package "redis" (version 5 or later): run npm install redis. The packages ioredis and iovalkey work too; or pass a client';
    expect(run(script, 'module')).toEqual([message, message]);
  });

  it('the messages of the package link to the documentation of its version', () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    for (const [type, load] of [
      ['commonjs', "const { staticFiles } = require('espalier/static');"],
      ['module', "import { staticFiles } from 'espalier/static';"],
    ] as const) {
      const script = `${load} try { staticFiles('.', { htlm: true }) } catch (error) { console.log(JSON.stringify(error.message)) }`;
      expect(run(script, type)).toContain(`/blob/v${version}/docs/static-files.md`);
    }
  });

  it('espalier/server works without graphql', () => {
    const script = `console.log(typeof require('espalier/server').createServer(() => {}).listen === 'function')`;
    expect(run(script, 'commonjs')).toBe(true);
  });
});

describe('npm install espalier graphql', () => {
  const empty = scratchFolder();
  afterAll(() => rmSync(empty, { recursive: true, force: true }));

  it('npm install espalier graphql works without Express', () => {
    install(empty, tarball.path, 'graphql@16');
    expect(readdirSync(join(empty, 'node_modules'))).not.toContain('express');
    const script = `import('espalier').then((all) => console.log(Object.keys(all).length))`;
    const output = execFileSync(process.execPath, ['--eval', script], { cwd: empty, encoding: 'utf8' });
    expect(Number(output)).toBeGreaterThan(5);
  }, 120_000);
});

describe('an installation with an older graphql', () => {
  const old = scratchFolder();
  afterAll(() => rmSync(old, { recursive: true, force: true }));

  it('graphqlHTTP warns about a version of graphql that is not supported', () => {
    install(old, '--legacy-peer-deps', tarball.path, 'graphql@16.14.2');
    const script = `const { graphqlHTTP } = require('espalier');
      graphqlHTTP(require('graphql').buildSchema('type Query { hello: String }'));`;
    const { stderr } = spawnSync(process.execPath, ['--eval', script], { cwd: old, encoding: 'utf8' });
    expect(stderr).toContain('graphql 16.14.2 is installed, but the supported versions are ^16.15.0');
  }, 120_000);
});

describe('an installation with graphql', () => {
  const full = scratchFolder();
  afterAll(() => rmSync(full, { recursive: true, force: true }));
  beforeAll(() => {
    install(
      full,
      '--legacy-peer-deps',
      tarball.path,
      'express@5',
      `graphql@${process.env['GRAPHQL_MAJOR'] ?? 16}`,
      '@opentelemetry/api@1.9.0',
    );
  }, 120_000);

  it('espalier exports exactly the documented names', () => {
    const script = `console.log(JSON.stringify(Object.keys(require('espalier')).sort()))`;
    const names = [
      'Method',
      'Upload',
      'attachSubscriptions',
      'createServer',
      'graphqlHTTP',
      'resolveReferences',
      'staticFiles',
    ];
    expect(runIn(full, script, 'commonjs')).toEqual(names);
    const imported = `import * as all from 'espalier'; console.log(JSON.stringify(Object.keys(all).sort()))`;
    expect(runIn(full, imported, 'module')).toEqual(names);
  });

  it('each entry is the same module for require and import', () => {
    const entries = ['espalier', ...SUBPATHS.map((name) => `espalier/${name}`)];
    const script = `
      import { createRequire } from 'node:module';
      const require = createRequire(import.meta.url);
      const all = {};
      for (const entry of ${JSON.stringify(entries)}) {
        const imported = await import(entry);
        const required = require(entry);
        const names = Object.keys(imported);
        all[entry] = names.length > 0 && names.every((name) => imported[name] === required[name]);
      }
      console.log(JSON.stringify(all));`;
    expect(runIn(full, script, 'module')).toEqual(Object.fromEntries(entries.map((entry) => [entry, true])));
  });

  it('the package has a CommonJS build for tools that do not support ES modules', () => {
    const { name } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const script = `
      const path = require('node:path').dirname(require.resolve('${name}/package.json'));
      console.log(JSON.stringify(Object.keys(require(path + '/dist/index.cjs')).length))`;
    expect(runIn(full, script, 'commonjs')).toBe(7);
  });

  const requestPage = `
    const app = express().use('/graphql', graphqlHTTP(buildSchema('type Query { hello: String }'), { rootValue: { hello: 'world' } }));
    const server = createServer(app).listen(0, async () => {
      const url = 'http://127.0.0.1:' + server.address().port + '/graphql';
      const { data } = await (await fetch(url + '?query={hello}')).json();
      const page = await (await fetch(url, { headers: { accept: 'text/html' } })).text();
      const script = /<script[^>]+src="([^"]+)"/.exec(page)?.[1] ?? page;
      const asset = await fetch(new URL(script, url + '/'));
      console.log(JSON.stringify([data, asset.status, asset.headers.get('content-type')]));
      server.close();
      server.closeAllConnections();
    });`;
  const required = `const express = require('express'); const { buildSchema } = require('graphql');
    const { createServer, graphqlHTTP } = require('espalier');`;
  const expected = [{ hello: 'world' }, 200, expect.stringContaining('javascript')];

  it('the installed package serves queries and GraphiQL when it is imported', () => {
    const imported = `import express from 'express'; import { buildSchema } from 'graphql';
      import { createServer, graphqlHTTP } from 'espalier';`;
    expect(runIn(full, imported + requestPage, 'module')).toEqual(expected);
  });

  it('the installed package serves queries and GraphiQL when it is required', () => {
    expect(runIn(full, required + requestPage, 'commonjs')).toEqual(expected);
  });

  it('the CommonJS build serves GraphiQL where require() cannot load ES modules, as in Jest', () => {
    const script = required + requestPage;
    expect(runIn(full, script, 'commonjs', '--no-experimental-require-module')).toEqual(expected);
  });
});
