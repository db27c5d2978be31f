import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Response } from 'express';
import type { Behaviour } from './behaviour.ts';

const views = resolve(__dirname, '..', 'views');
const page = resolve(views, 'page.txt');

/** A behaviour per kind of response: `GET /` sends it, with and without conditions. */
function answering(title: string, answer: (res: Response) => unknown): Behaviour {
  return {
    title: `sends ${title}`,
    define: (app) => app.get('/', (_req, res) => void answer(res)),
    asks: [
      '/',
      { path: '/', method: 'HEAD' },
      { path: '/', headers: { 'if-none-match': '*', accept: 'text/plain' } },
    ],
  };
}

const ranged = { path: '/', headers: { range: 'bytes=5-9' } };

export const responses: Behaviour[] = [
  answering('res.json()', (res) => res.json({ a: 1, b: ['<', null] })),
  answering('res.jsonp()', (res) => res.jsonp({ a: 1 })),
  answering('res.send() of text', (res) => res.send('<p>hello</p>')),
  answering('res.send() of bytes', (res) => res.send(Buffer.from([0, 1, 255]))),
  answering('res.send() of an object', (res) => res.send({ a: 1 })),
  answering('res.send() and 204', (res) => res.status(204).send('ignored')),
  answering('res.sendStatus()', (res) => res.sendStatus(202)),
  answering('res.end()', (res) => res.set('content-length', '5').end('plain')),
  answering('res.writeHead()', (res) => res.writeHead(203, { 'x-two': '2' }).end('head')),
  answering('res.write()', (res) => {
    res.write('one,');
    res.write('two');
    res.end();
  }),
  answering('res.redirect()', (res) => res.redirect(301, '/elsewhere?a=ü')),
  answering('res.cookie()', (res) =>
    res.cookie('a', 'b', { httpOnly: true }).clearCookie('c').send('cookies'),
  ),
  answering('res.append(), vary(), links() and type()', (res) =>
    res
      .append('x-one', ['1', '2'])
      .vary('accept')
      .links({ next: '/2' })
      .type('css')
      .location('/3')
      .send('a {}'),
  ),
  answering('res.attachment()', (res) => res.attachment('a page.txt').send('words')),
  answering('res.format()', (res) =>
    res.format({ html: () => res.send('<p>'), text: () => res.send('text') }),
  ),
  answering('res.get() and removeHeader()', (res) => {
    res.set({ 'x-one': '1', 'x-two': '2' }).removeHeader('x-two');
    res.json([res.get('x-one'), res.getHeaderNames(), res.headersSent, res.writableEnded, res.statusCode]);
  }),
  {
    title: 'sends a file with res.sendFile()',
    define: (app) => app.get('/', (_req, res) => res.sendFile(page, { maxAge: 1000 })),
    asks: ['/', ranged, { path: '/', method: 'HEAD' }, { path: '/', headers: { range: 'bytes=900-' } }],
  },
  {
    title: 'sends a file with res.download() and a callback',
    define: (app) => {
      let sent: unknown = 'not yet';
      app.get('/', (_req, res) =>
        res.download(page, 'name.txt', (error) => {
          sent = error === undefined ? 'sent' : String(error);
        }),
      );
      app.get('/sent', (_req, res) => res.json(sent));
    },
    asks: ['/', '/sent'],
  },
  {
    title: 'sends files that do not exist',
    define: (app) => app.get('/', (_req, res) => res.sendFile('nothing.txt', { root: views })),
    asks: ['/'],
  },
  {
    title: 'serves files with express.static',
    define: (app, express) => app.use('/files', express.static(views)),
    asks: ['/files/page.txt', '/files', '/files/../page.txt', '/files/nothing'],
  },
  {
    title: 'renders views, set up before and after',
    define: (app) => {
      app.set('views', views).set('view engine', 'plain');
      app.get('/', (_req, res) => res.render('hello', { name: 'you' }));
      app.get('/nothing', (_req, res) => res.render('nothing'));
      return () => {
        app.engine('plain', (path, options, done) => {
          const { name, greeting } = options as Record<string, string>;
          done(null, readFileSync(path, 'utf8').replace('%name%', `${greeting} ${name}`));
        });
        app.locals['greeting'] = 'hello';
      };
    },
    asks: ['/', '/nothing'],
  },
  {
    title: 'says who it is powered by, or not',
    define: (app) => {
      app.get('/', (_req, res) => res.send('words'));
      return () => app.disable('x-powered-by');
    },
    asks: ['/'],
  },
  {
    title: 'sets the option etag',
    define: (app) => app.set('etag', 'strong').get('/', (_req, res) => res.send('words')),
    asks: ['/', { path: '/', headers: { 'if-none-match': '"5-h/LbUCm32NpK1l3+hCCpxjYgHV8"' } }],
  },
];
