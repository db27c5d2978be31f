import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  // Every chunk, stylesheet and worker finds the next one from its own URL, so no mount path is baked in.
  base: './',
  logLevel: 'error',
  // GraphiQL loads Prettier's GraphQL parser under its old name too, which would be a second copy of it.
  resolve: { alias: { 'prettier/parser-graphql': 'prettier/plugins/graphql' } },
  worker: { format: 'es' },
  build: {
    target: 'es2022',
    write: false,
    manifest: 'vite.json',
    assetsDir: '',
    // No data: URLs: the policy lets in no fonts from them.
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      input: 'main.tsx',
      // Two big files that load side by side, one that waits until something is to be prettified, and our own.
      output: {
        codeSplitting: {
          groups: [
            { name: 'editor', test: /node_modules\/monaco-editor\// },
            { name: 'prettier', test: /node_modules\/prettier\// },
            { name: 'libraries', test: /node_modules\// },
          ],
        },
      },
    },
  },
});
