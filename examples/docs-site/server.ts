// The documentation as a site: `npm ci --prefix site && npm run build --prefix site && npx tsx examples/docs-site/server.ts`
import { existsSync } from 'node:fs';
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

// The pages load nothing from other hosts. The hashes of the inline scripts of each page are added.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
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
    cacheControl: /\/assets\//, // their names contain a hash of the content
    notFound: '404.html',
    pages: { csp: policy },
    variants: ['md'], // the pages as Markdown, for programs that ask for it
    setHeaders(res, path) {
      if (path.endsWith('.html')) res.setHeader('Referrer-Policy', 'same-origin');
    },
  }),
);

const port = Number(process.env.PORT ?? 3000);
createServer(app).listen(port, () => console.log(`Documentation on http://localhost:${port}/`));
