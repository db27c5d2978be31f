// A static site: `npx tsx examples/site.ts [folder]`.
import { fileURLToPath } from 'node:url';
import { staticFiles } from 'espalier/static';
import express from 'express';

const folder = process.argv[2] ?? fileURLToPath(new URL('site', import.meta.url));
const port = Number(process.env.PORT ?? 3000);

const app = express();
app.use('/', staticFiles(folder, { html: true, cacheControl: '1m' }));

app.listen(port, (error) => {
  if (error) throw error;
  console.log(`${folder} on http://localhost:${port}/`);
});
