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

/** Writes each entry of middleware/ as an ES and as a CommonJS module, not minified. */
export async function bundle(root, entries, folder) {
  const input = Object.fromEntries(entries.map((name) => [name, join(root, 'middleware', `${name}.ts`)]));
  for (const [format, extension] of [
    ['esm', 'mjs'],
    ['cjs', 'cjs'],
  ]) {
    const build = await rolldown({
      cwd: root,
      input,
      platform: 'node',
      tsconfig: false,
      external: (id) => !/^[./]|^[A-Z]:/i.test(id),
      plugins: format === 'cjs' ? [requireGraphiql()] : [],
    });
    await build.write({
      dir: folder,
      format,
      strict: true,
      entryFileNames: `[name].${extension}`,
      chunkFileNames: `[name].${extension}`,
      codeSplitting: { groups: GROUPS },
    });
    await build.close();
  }
}

/** Tools that know CommonJS only, such as Jest, cannot load an ES module: the module that names GraphiQL's folder is required. */
function requireGraphiql() {
  let replaced = 0;
  return {
    name: 'require-graphiql',
    renderChunk(code) {
      const rest = code.split('import("#graphiql")');
      replaced += rest.length - 1;
      return rest.length > 1 ? rest.join('Promise.resolve().then(() => require("#graphiql"))') : null;
    },
    generateBundle() {
      if (replaced !== 1) throw new Error(`${replaced} imports of #graphiql were replaced instead of one`);
    },
  };
}
