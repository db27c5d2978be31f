// Builds argv[2]/main.js into argv[3] with webpack. With argv[4] the output is ES modules.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import webpack from 'webpack';

const [, , source, target, format] = process.argv;
const isModule = format === 'module';
const stats = await new Promise((resolve, reject) => {
  const done = (error, result) => (error ? reject(error) : resolve(result));
  webpack(
    {
      mode: 'production',
      context: source,
      entry: './main.js',
      devtool: 'source-map',
      optimization: { minimize: false, splitChunks: { chunks: 'all', minSize: 0 }, runtimeChunk: 'single' },
      experiments: { css: true, outputModule: isModule },
      module: { rules: [{ test: /\.svg$/, type: 'asset/resource' }] },
      output: {
        path: target,
        publicPath: '/',
        module: isModule,
        chunkFormat: isModule ? 'module' : 'array-push',
        filename: 'js/[name].[contenthash].js',
        chunkFilename: 'js/[name].[contenthash].chunk.js',
        cssFilename: 'css/[name].[contenthash].css',
        cssChunkFilename: 'css/[name].[contenthash].css',
      },
    },
    done,
  );
});
const { errors, entrypoints } = stats.toJson({ all: false, errors: true, entrypoints: true });
for (const { message } of errors) console.error(message);
// What html-webpack-plugin writes.
const tags = entrypoints.main.assets.map(({ name }) =>
  name.endsWith('.css')
    ? `<link href="/${name}" rel="stylesheet">`
    : `<script defer="defer"${isModule ? ' type="module"' : ''} src="/${name}"></script>`,
);
writeFileSync(
  join(target, 'index.html'),
  `<!doctype html><html><head><meta charset="utf-8"><title>start</title>
<script>document.documentElement.dataset.inline = 'ran';</script>${tags.join('')}</head>
<body><button id="more">more</button></body></html>
`,
);
process.exitCode = errors.length > 0 ? 1 : 0;
