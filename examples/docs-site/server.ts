// The documentation as a site: `npm ci --prefix site && npm run build --prefix site && npx tsx examples/docs-site/server.ts`
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createServer } from 'espalier/server';
import { staticFiles } from 'espalier/static';
import express from 'express';

const folder = process.env.SITE_DIR ?? fileURLToPath(new URL('../../site/dist', import.meta.url));
const index = `${folder}/index.html`;
if (!existsSync(index)) {
  console.error(
    `${folder} has no pages. Build them with: npm ci --prefix site && npm run build --prefix site`,
  );
  process.exit(1);
}

// The pages load nothing from other hosts, and their policy allows only the inline scripts of the build.
const scripts = readFileSync(index, 'utf8').matchAll(/<script(?![^>]*\ssrc=)[^>]*>([^<]+)<\/script>/g);
const hashes = [...scripts].map(
  ([, code = '']) => `'sha256-${createHash('sha256').update(code).digest('base64')}'`,
);
const policy = [
  "default-src 'none'",
  `script-src 'self' ${hashes.join(' ')}`,
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const app = express().disable('x-powered-by');
app.use(
  '/',
  staticFiles(folder, {
    cleanUrls: true,
    compress: true,
    immutable: /\/assets\//, // their names contain a hash of the content
    notFound: '404.html',
    setHeaders(res, path) {
      if (!path.endsWith('.html')) return;
      res.setHeader('Content-Security-Policy', policy);
      res.setHeader('Referrer-Policy', 'same-origin');
    },
  }),
);

const port = Number(process.env.PORT ?? 3000);
createServer(app).listen(port, () => console.log(`Documentation on http://localhost:${port}/`));
