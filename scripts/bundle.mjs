import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';

// Modules that several entries share. An entry loads only the groups that it imports: espalier/static loads neither
// graphql nor ws. Rolldown's few helper functions for CommonJS are in the group that all entries import.
const GROUPS = [
  // Subscriptions and espalier/pubsub share the cursors.
  {
    name: 'lib/http',
    test: /[\\/]src[\\/](diagnostics|http|options)[\\/]|[\\/]src[\\/]pubsub[\\/]cursor\.ts|rolldown[\\/]runtime/,
  },
  { name: 'lib/static', test: /[\\/]src[\\/]static[\\/]/ },
  // The stores, and the commands of Redis. The rest of the response cache belongs to the API.
  {
    name: 'lib/cache',
    test: /[\\/]src[\\/](redis[\\/](clients|commands|connection)\.ts|cache[\\/](invalidations|memory-store|redis-store|store)\.ts)/,
  },
  { name: 'lib/server', test: /[\\/]src[\\/]server[\\/]/ },
  {
    name: 'lib/graphql',
    test: /[\\/]src[\\/](auth|cache|compress|core|cost|cursors|engine|execution|graphiql|graphql|live|streams|uploads|usage)[\\/]|[\\/]idempotency[\\/](directive|options)\.ts/,
  },
  // What espalier/pubsub and espalier/postgres share.
  { name: 'lib/pubsub', test: /[\\/]src[\\/]pubsub[\\/](history|transport)\.ts/ },
  // Loaded with the first connection to Redis.
  { name: 'lib/redis', test: /[\\/]src[\\/]redis[\\/](cluster|connect|node-redis)\.ts/ },
  // Loaded when a handler has the option `idempotency`.
  { name: 'lib/idempotency', test: /[\\/]src[\\/]idempotency[\\/](keys|mutations)\.ts/ },
];

/** Writes each entry of middleware/ as an ES and as a CommonJS module, and the command as one ES module, not minified. */
export async function bundle(root, entries, folder) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const input = Object.fromEntries(entries.map((name) => [name, join(root, 'middleware', `${name}.ts`)]));
  for (const [format, extension] of [
    ['esm', 'mjs'],
    ['cjs', 'cjs'],
  ]) {
    const plugins = [linkToVersion(version), format === 'cjs' ? requireLazily() : getNodeModules()];
    await write(
      { cwd: root, input, plugins },
      {
        dir: folder,
        format,
        strict: true,
        entryFileNames: `[name].${extension}`,
        chunkFileNames: `[name].${extension}`,
        codeSplitting: { groups: GROUPS },
        // The ES modules, which current versions of Node load in both cases, are the ones to read.
        ...(format === 'cjs' ? { comments: false } : {}),
      },
    );
  }
  // As another entry of the same build it would double the entries, each with a file that only exports the other one.
  await write(
    { cwd: root, input: join(root, 'src/cli/main.ts'), plugins: [linkToVersion(version), getNodeModules()] },
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

// Imports that a CommonJS module requires instead: tools that know CommonJS only, such as Jest, cannot load an ES module.
const REQUIRED = {
  '#graphiql': 'require("#graphiql")',
  graphql: 'require("graphql")',
  'graphql-ws': 'require("graphql-ws")',
  debug: '{ default: require("debug") }',
  'lru-cache': 'require("lru-cache")',
  etag: '{ default: require("etag") }',
  multer: '{ default: require("multer") }',
  send: '{ default: require("send") }',
  ws: 'require("ws")',
};

/** Turns these dynamic imports into calls of `require`. */
function requireLazily() {
  const missing = new Set(Object.keys(REQUIRED));
  return {
    name: 'require-lazily',
    renderChunk(code) {
      let replaced = code;
      for (const [name, value] of Object.entries(REQUIRED)) {
        if (!code.includes(`import("${name}")`)) continue;
        replaced = replaced.replaceAll(`import("${name}")`, `Promise.resolve().then(() => (${value}))`);
        missing.delete(name);
      }
      return replaced === code ? null : replaced;
    },
    generateBundle() {
      if (missing.size > 0) throw new Error(`not imported: ${[...missing].join(', ')}`);
    },
  };
}
