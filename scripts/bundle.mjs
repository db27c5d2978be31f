import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { makerOf, optionalFileName, readOptional, splitOptional } from './optional.mjs';

// Modules that several entries share. An entry loads only the groups that it imports: espalier/static loads neither
// graphql nor ws. The modules of options are in no group: see optional.mjs. Rolldown's few helper functions for CommonJS
// are in the group that all entries import.
const GROUPS = [
  // Subscriptions and espalier/pubsub share the cursors.
  {
    name: 'lib/http',
    test: /[\\/]src[\\/](diagnostics|http|options(?![\\/]replaced))[\\/]|[\\/]src[\\/]pubsub[\\/]cursor\.ts|rolldown[\\/]runtime/,
  },
  {
    name: 'lib/static',
    test: /[\\/]src[\\/](?:static(?![\\/](?:keep|listing))[\\/]|signed[\\/]|pages[\\/]optional)|[\\/]middleware[\\/]static\.ts/,
  },
  // The stores, and the connections to Redis. The rest of the response cache belongs to the API.
  {
    name: 'lib/cache',
    test: /[\\/]src[\\/](redis[\\/]|cache[\\/](invalidations|memory-store|redis-store|store)\.ts)/,
  },
  // What espalier/uploads needs without graphql.
  { name: 'lib/uploads', test: /[\\/]src[\\/]uploads[\\/](?!receive\.|scalar\.)/ },
  { name: 'lib/server', test: /[\\/]src[\\/]server[\\/]|[\\/]middleware[\\/]server\.ts/ },
  {
    name: 'lib/graphql',
    test: /[\\/]src[\\/]((compress|core(?![\\/](?:by-id|persisted|trusted))|engine|execution|graphiql|graphql|live)[\\/]|uploads[\\/](receive|scalar)\.ts|(\w|-)+[\\/](directives?|unset)\.ts|rate-limit[\\/](buckets|refusal)\.ts)|[\\/]middleware[\\/](graphql|subscriptions)\.ts/,
  },
  // What espalier/pubsub and espalier/presence share.
  { name: 'lib/streams', test: /[\\/]src[\\/]pubsub[\\/]derived\.ts/ },
  // What espalier/pubsub and espalier/postgres share.
  { name: 'lib/pubsub', test: /[\\/]src[\\/]pubsub[\\/](history|transport)\.ts/ },
];

/** Writes each entry of middleware/ as an ES and as a CommonJS module, and the command as one ES module, not minified. */
export async function bundle(root, entries, folder) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const optional = readOptional(root);
  const input = Object.fromEntries(entries.map((name) => [name, join(root, 'middleware', `${name}.ts`)]));
  for (const [format, extension] of [
    ['esm', 'mjs'],
    ['cjs', 'cjs'],
  ]) {
    const plugins = [
      splitOptional(optional, format),
      importPackages(),
      linkToVersion(version),
      format === 'cjs' ? requireGraphql() : getNodeModules(),
    ];
    await write(
      { cwd: root, input, plugins },
      {
        dir: folder,
        format,
        strict: true,
        entryFileNames: `[name].${extension}`,
        chunkFileNames: optionalFileName(optional, extension),
        codeSplitting: { groups: GROUPS },
        // The ES modules, which current versions of Node load in both cases, are the ones to read.
        ...(format === 'cjs' ? { comments: false } : {}),
      },
    );
  }
  writePackages(root, folder, [...optional.values()]);
  // As another entry of the same build it would double the entries, each with a file that only exports the other one.
  await write(
    {
      cwd: root,
      input: join(root, 'src/cli/main.ts'),
      plugins: [importPackages(), linkToVersion(version), getNodeModules()],
    },
    {
      dir: folder,
      entryFileNames: 'cli.mjs',
      // The command espalier check, which needs graphql.
      chunkFileNames: 'lib/cli-[name].mjs',
      format: 'esm',
      banner: ({ isEntry }) => (isEntry ? '#!/usr/bin/env node' : ''),
    },
  );
}

/** Writes espalier/client, which is for browsers: minified, and without a shared module. */
export async function bundleClient(root, folder) {
  for (const [format, extension] of [
    ['esm', 'mjs'],
    ['cjs', 'cjs'],
  ]) {
    await write(
      { cwd: root, input: join(root, 'client/index.ts'), platform: 'browser' },
      { file: join(folder, `client.${extension}`), format, minify: true },
    );
  }
}

async function write(options, output) {
  const external = (id) => !/^[./]|^[A-Z]:/i.test(id);
  const build = await rolldown({ platform: 'node', tsconfig: false, external, ...options });
  await build.write(output);
  await build.close();
}

/** Lets the messages of a release link to its own documentation. */
function linkToVersion(version) {
  return {
    name: 'link-to-version',
    renderChunk(code) {
      const replaced = code.replaceAll('/blob/main/docs', `/blob/v${version}/docs`);
      return replaced === code ? null : replaced;
    },
  };
}

/**
 * Turns the imports of Node's modules into calls of `process.getBuiltinModule`. Node reads all properties of a module
 * that an ES module imports. On Node 22 and later, those of `node:http` load the client of fetch, which takes 30 ms.
 */
function getNodeModules() {
  return {
    name: 'get-node-modules',
    renderChunk(code) {
      return code.replaceAll(/^import (.+) from ("node:[^"]+");$/gm, (_, bindings, name) => {
        const module = `process.getBuiltinModule(${name})`;
        const [, all, main, named] = /^(?:\* as (\S+)|([\w$]+)?(?:, )?(\{.*\})?)$/.exec(bindings);
        const constants = [all ?? main, named?.replaceAll(' as ', ': ')].filter(
          (names) => names !== undefined,
        );
        return constants.map((names) => `const ${names} = ${module};`).join('\n');
      });
    },
  };
}

const PACKAGES = 'src/diagnostics/packages.ts';

/**
 * Writes the module that loads packages when a middleware is created: as CommonJS with calls of `require` for bundlers,
 * which set the condition `module`, `production` or `development`, and as an ES module for Node, because an ES module
 * that imports a CommonJS module loads Node's parser of such modules.
 */
function writePackages(root, folder, names) {
  const source = readFileSync(join(root, PACKAGES), 'utf8');
  const [, members] = /export const packages: Packages = (\{.*?\n\});/s.exec(source);
  const create =
    "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);\n";
  const makers = names.map((name) => `  ${name}: (modules) => require('${makerOf(name)}')(modules),\n`);
  const optional = `{\n${makers.join('')}}`;
  const packages = Object.entries({ packages: members, optional });
  const write = (file, start, format) =>
    writeFileSync(join(folder, 'lib', file), start + packages.map(format).join(''));
  write('packages.cjs', "'use strict';\n", ([name, value]) => `exports.${name} = ${value};\n`);
  write('packages.mjs', create, ([name, value]) => `export const ${name} = ${value};\n`);
}

/** Lets all chunks import that module. */
function importPackages() {
  return {
    name: 'import-packages',
    resolveId: (id) => (/[\\/]packages\.ts$/.test(id) ? { id: '#packages', external: true } : null),
  };
}

/** Tools that know CommonJS only, such as Jest, cannot load an ES module. */
function requireGraphql() {
  return {
    name: 'require-graphql',
    renderChunk: (code) =>
      code.replaceAll('import("graphql")', 'Promise.resolve().then(() => require("graphql"))'),
  };
}
