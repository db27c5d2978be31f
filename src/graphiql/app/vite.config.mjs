import { defineConfig } from 'vite';
import { patches } from './patches.mjs';

export default defineConfig({
  root: import.meta.dirname,
  // Chunks, stylesheets and workers are loaded by relative URLs, so the build does not depend on the mount path.
  base: './',
  logLevel: 'error',
  plugins: [patches],
  // GraphiQL also imports Prettier's GraphQL parser by its old name, which would add a second copy.
  resolve: { alias: { 'prettier/parser-graphql': 'prettier/plugins/graphql' } },
  worker: { format: 'es' },
  build: {
    target: 'es2022',
    write: false,
    manifest: 'vite.json',
    assetsDir: '',
    // No data: URLs, since the policy does not allow fonts from them.
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      input: 'main.tsx',
      // Two large chunks that load in parallel, one that is loaded when the user prettifies a query, and our code.
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
