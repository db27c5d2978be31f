import { staticFiles } from 'espalier';
import express from 'express';

const app = express();
app.use(
  '/static',
  staticFiles('public', {
    html: true,
    extensions: ['html'],
    cacheControl: '1d',
    setHeaders: (res, path) => res.setHeader('x-name', path.split('/').at(-1) ?? ''),
  }),
);
app.use((_req, res) => void res.status(404).send('nothing here'));
app.listen(3000);
