import { join } from 'node:path';
import { rolldown } from 'rolldown';

// Modules that several entries share. An entry loads only the groups that it imports: espalier/static loads neither
// graphql nor ws. Rolldown's few helper functions for CommonJS are in the group that all entries import.
const GROUPS = [
  { name: 'lib/http', test: /[\\/]src[\\/](http|logging|options)[\\/]|rolldown[\\/]runtime/ },
  { name: 'lib/static', test: /[\\/]src[\\/]static[\\/]/ },
  { name: 'lib/server', test: /[\\/]src[\\/]server[\\/]/ },
  {
    name: 'lib/graphql',
    test: /[\\/]src[\\/](core|engine|execution|graphiql|graphql|subscriptions|uploads|websocket)[\\/]/,
  },
];

/** Writes each entry of middleware/ as an ES and as a CommonJS module, and the command as an ES module, not minified. */
export async function bundle(root, entries, folder) {
  const input = Object.fromEntries(entries.map((name) => [name, join(root, 'middleware', `${name}.ts`)]));
  for (const [format, extension] of [
    ['esm', 'mjs'],
    ['cjs', 'cjs'],
  ]) {
    const build = await rolldown({
      cwd: root,
      input: format === 'esm' ? { ...input, cli: join(root, 'src/cli/main.ts') } : input,
      platform: 'node',
      tsconfig: false,
      external: (id) => !/^[./]|^[A-Z]:/i.test(id),
      plugins: format === 'cjs' ? [requireLazily()] : [],
    });
    await build.write({
      dir: folder,
      format,
      strict: true,
      banner: ({ name }) => (name === 'cli' ? '#!/usr/bin/env node' : ''),
      entryFileNames: `[name].${extension}`,
      chunkFileNames: `[name].${extension}`,
      codeSplitting: { groups: GROUPS },
    });
    await build.close();
  }
}

// Imports that a CommonJS module requires instead: tools that know CommonJS only, such as Jest, cannot load an ES module.
const REQUIRED = {
  '#graphiql': 'require("#graphiql")',
  debug: '{ default: require("debug") }',
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
