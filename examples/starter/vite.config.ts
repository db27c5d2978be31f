import { defineConfig } from 'vite';

const server = `http://localhost:${process.env.PORT ?? 3000}`;

export default defineConfig({
  root: 'client',
  build: { outDir: '../dist/client', emptyOutDir: true },
  server: {
    proxy: {
      // The server compares Origin with Host, so the proxy passes Host on unchanged.
      '/graphql': { target: server, ws: true, changeOrigin: false },
      '/pictures': { target: server, changeOrigin: false },
    },
  },
});
