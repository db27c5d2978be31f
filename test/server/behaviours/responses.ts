import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Response } from 'express';
import type { Behaviour } from './behaviour.ts';

const views = resolve(__dirname, '..', 'views');
const page = resolve(views, 'page.txt');

/** A behaviour per kind of response: `GET /` sends it, with and without conditions. */
function sending(title: string, response: (res: Response) => unknown): Behaviour {
  return {
    title: `sends ${title}`,
    define: (app) => app.get('/', (_req, res) => void response(res)),
    requestsToSend: [
      '/',
      { path: '/', method: 'HEAD' },
      { path: '/', headers: { 'if-none-match': '*', accept: 'text/plain' } },
    ],
  };
}

const ranged = { path: '/', headers: { range: 'bytes=5-9' } };

export const responses: Behaviour[] = [
  sending('res.json()', (res) => res.json({ a: 1, b: ['<', null] })),
  sending('res.jsonp()', (res) => res.jsonp({ a: 1 })),
  sending('res.send() of text', (res) => res.send('<p>hello</p>')),
  sending('res.send() of bytes', (res) => res.send(Buffer.from([0, 1, 255]))),
  sending('res.send() of an object', (res) => res.send({ a: 1 })),
  sending('res.send() and 204', (res) => res.status(204).send('ignored')),
  sending('res.sendStatus()', (res) => res.sendStatus(202)),
  sending('res.end()', (res) => res.set('content-length', '5').end('plain')),
  sending('res.writeHead()', (res) => res.writeHead(203, { 'x-two': '2' }).end('head')),
  sending('res.write()', (res) => {
    res.write('one,');
    res.write('two');
    res.end();
  }),
  sending('res.redirect()', (res) => res.redirect(301, '/elsewhere?a=ü')),
  sending('res.cookie()', (res) => res.cookie('a', 'b', { httpOnly: true }).clearCookie('c').send('cookies')),
  sending('res.append(), vary(), links() and type()', (res) =>
    res
      .append('x-one', ['1', '2'])
      .vary('accept')
      .links({ next: '/2' })
      .type('css')
      .location('/3')
      .send('a {}'),
  ),
  sending('res.attachment()', (res) => res.attachment('a page.txt').send('words')),
  sending('res.format()', (res) => res.format({ html: () => res.send('<p>'), text: () => res.send('text') })),
  sending('res.get() and removeHeader()', (res) => {
    res.set({ 'x-one': '1', 'x-two': '2' }).removeHeader('x-two');
    res.json([res.get('x-one'), res.getHeaderNames(), res.headersSent, res.writableEnded, res.statusCode]);
  }),
  {
    title: 'sends a file with res.sendFile()',
    define: (app) => app.get('/', (_req, res) => res.sendFile(page, { maxAge: 1000 })),
    requestsToSend: [
      '/',
      ranged,
      { path: '/', method: 'HEAD' },
      { path: '/', headers: { range: 'bytes=900-' } },
    ],
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
    requestsToSend: ['/', '/sent'],
  },
  {
    title: 'sends files that do not exist',
    define: (app) => app.get('/', (_req, res) => res.sendFile('nothing.txt', { root: views })),
    requestsToSend: ['/'],
  },
  {
    title: 'serves files with express.static',
    define: (app, express) => app.use('/files', express.static(views)),
    requestsToSend: ['/files/page.txt', '/files', '/files/../page.txt', '/files/nothing'],
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
    requestsToSend: ['/', '/nothing'],
  },
  {
    title: 'sends X-Powered-By, or not',
    define: (app) => {
      app.get('/', (_req, res) => res.send('words'));
      return () => app.disable('x-powered-by');
    },
    requestsToSend: ['/'],
  },
  {
    title: 'sets the option etag',
    define: (app) => app.set('etag', 'strong').get('/', (_req, res) => res.send('words')),
    requestsToSend: ['/', { path: '/', headers: { 'if-none-match': '"5-h/LbUCm32NpK1l3+hCCpxjYgHV8"' } }],
  },
];
