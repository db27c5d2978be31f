import type { Request, Response } from 'express';
import type { App, Behaviour } from './behaviour.ts';

const about = (req: Request, res: Response): unknown =>
  res.json({
    address: [req.ip, req.ips],
    protocol: [req.protocol, req.secure],
    host: [req.hostname, req.subdomains],
    url: [req.url, req.originalUrl, req.baseUrl, req.path, req.method],
    query: req.query,
    accepts: [req.accepts(['json', 'html']), req.acceptsCharsets('utf-8'), req.acceptsLanguages('de', 'en')],
    is: [req.is('json'), req.is('html')],
    get: [req.get('X-One'), req.get('Referrer'), req.header('x-one')],
    range: req.range(1000),
    cache: [req.fresh, req.stale, req.xhr],
    stream: [req.complete, req.readable, req.destroyed],
  });

const headers = {
  'x-one': '1',
  referer: 'http://elsewhere.test/',
  accept: 'text/html;q=0.5, application/json',
  'accept-language': 'en;q=0.5, de',
  range: 'bytes=10-20,30-40',
  'x-requested-with': 'XMLHttpRequest',
};
const proxied = {
  'x-forwarded-for': '1.2.3.4, 5.6.7.8',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'a.b.site.example',
};
const json = { 'content-type': 'application/json' };

const trust =
  (value: unknown) =>
  (app: App): unknown =>
    app.set('trust proxy', value).get('/', about);

export const requests: Behaviour[] = [
  {
    title: 'reads the members of a request',
    define: (app) => app.get('/a/b', about),
    requestsToSend: [{ path: '/a/b?x=1&y[z]=2', headers }],
  },
  ...[false, true, 1, 'loopback', '10.0.0.0/8'].map((value) => ({
    title: `sets trust proxy: ${value}`,
    define: trust(value),
    requestsToSend: [{ path: '/', headers: proxied }],
  })),
  {
    title: 'sets trust proxy later',
    define: (app) => {
      app.get('/', about);
      return () => app.set('trust proxy', true);
    },
    requestsToSend: [{ path: '/', headers: proxied }],
  },
  {
    title: 'parses bodies and queries',
    define: (app, express) => {
      app
        .set('query parser', 'extended')
        .use(express.json(), express.urlencoded({ extended: true }), express.text());
      app.all('/', (req, res) => res.json([req.method, req.query, req.body ?? 'no body']));
    },
    requestsToSend: [
      { path: '/?a[b]=1', method: 'POST', headers: json, body: '{"a":[1,2]}' },
      {
        path: '/',
        method: 'PUT',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: 'a[b]=1&c=2',
      },
      { path: '/', method: 'PATCH', headers: { 'content-type': 'text/plain' }, body: 'words' },
      { path: '/', method: 'DELETE' },
      { path: '/', method: 'POST', headers: json, body: '{"a":' },
    ],
  },
  {
    title: 'reads a body as a stream',
    define: (app) => app.post('/', (req, res) => req.setEncoding('utf8').pipe(res.type('text'))),
    requestsToSend: [{ path: '/', method: 'POST', body: 'a stream of words '.repeat(5000) }],
  },
  {
    title: 'routes through routers, parameters and prefixes',
    define: (app, express) => {
      const router = express.Router({ mergeParams: true });
      router.param('id', (req, _res, next, id) => {
        Object.assign(req, { loaded: `item ${id}` });
        next();
      });
      router.get('/items/:id', (req, res) =>
        res.json([req.params, req.baseUrl, req.url, Object(req).loaded]),
      );
      app.use(
        '/v/:version',
        (req, res, next) => {
          res.locals['from'] = req.path;
          next();
        },
        router,
      );
      app.use((_req, res) => res.status(404).json(res.locals));
      return () => app.get('/late', about);
    },
    requestsToSend: [
      '/v/2/items/7',
      '/v/2/items',
      '/late',
      '/nothing',
      { path: '/v/2/items/7', method: 'OPTIONS' },
    ],
  },
  {
    title: 'responds to OPTIONS and HEAD from its routes',
    define: (app) => app.get('/', about).post('/', about),
    requestsToSend: [
      { path: '/', method: 'OPTIONS' },
      { path: '/', method: 'HEAD' },
      { path: '/', method: 'PUT' },
    ],
  },
];
