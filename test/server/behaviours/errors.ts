import type { ErrorRequestHandler } from 'express';
import type { Behaviour } from './behaviour.ts';

const fault = (status?: number): Error => Object.assign(new Error('a fault'), { status, stack: 'a fault' });

const reported: ErrorRequestHandler = (error, req, res, _next) => {
  res.status(error.status ?? 500).json([String(error), req.app === res.app, req.url]);
};

export const errors: Behaviour[] = [
  {
    title: 'responds with 404 by default',
    define: () => undefined,
    requestsToSend: ['/', { path: '/<b>', method: 'POST' }],
  },
  {
    title: 'handles errors by default',
    define: (app) => {
      app.set('env', 'test');
      app.get('/thrown', () => {
        throw fault();
      });
      app.get('/passed', (_req, _res, next) => next(fault(409)));
      app.get('/headers', (_req, res, next) => {
        res.set('x-one', '1');
        next(Object.assign(fault(429), { headers: { 'retry-after': '5' } }));
      });
    },
    requestsToSend: ['/thrown', '/passed', '/headers'],
  },
  {
    title: 'passes errors to error handlers, also those added after',
    define: (app) => {
      app.get('/thrown', () => {
        throw fault(418);
      });
      app.get('/passed', (_req, _res, next) => next('only words'));
      app.get('/handled', (_req, _res, next) => next(fault(400)));
      app.use('/handled', reported);
      return () => app.use(reported);
    },
    requestsToSend: ['/thrown', '/passed', '/handled', '/%'],
  },
  {
    title: 'skips the rest of a route or router',
    define: (app, express) => {
      const router = express.Router();
      router.use((_req, _res, next) => next('router'));
      router.get('/', (_req, res) => res.send('never'));
      app.get(
        '/',
        (_req, _res, next) => next('route'),
        (_req, res) => res.send('never'),
      );
      app.use(router);
      app.get('/', (_req, res) => res.send('at last'));
    },
    requestsToSend: ['/'],
  },
];
