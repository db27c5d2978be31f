import { IncomingMessage, ServerResponse } from 'node:http';
import type { Request, Response } from 'express';
import { type App, type Behaviour, type ExpressModule, identity, members } from './behaviour.ts';

const MARKS = ['Before', 'After', 'Global', 'Sub'];

/** Adds a method, a getter and a value with the same names for every caller, marked with the name of the caller. */
function add(to: object, mark: string): void {
  Object.assign(to, { [`said${mark}`]: () => `said ${mark}`, shared: mark });
  Object.defineProperty(to, `seen${mark}`, { configurable: true, get: () => `seen ${mark}` });
}

function read(from: object): unknown[] {
  const marked = MARKS.map((mark) => [typeof members(from)[`said${mark}`], members(from)[`seen${mark}`]]);
  return [...marked, members(from)['shared']];
}

/** Undoes what was added to Express's own objects, which all apps share. */
export function forget(express: ExpressModule): void {
  for (const shared of [express.request, express.response]) {
    for (const name of ['saidGlobal', 'seenGlobal', 'shared']) Reflect.deleteProperty(shared, name);
  }
}

const additions = (req: Request, res: Response): unknown => res.json([read(req), read(res)]);

function subApp(express: ExpressModule): App {
  const sub = express();
  sub.set('own setting', 'mine');
  add(sub.request, 'Sub');
  sub.get('/additions', additions);
  sub.get('/identity', identity);
  sub.get('/place', (req, res) => res.json([req.app === sub, req.baseUrl, req.url, sub.mountpath]));
  sub.get('/settings', (req, res) =>
    res.json([req.app.get('own setting'), req.app.get('parent setting'), req.protocol, req.ip]),
  );
  sub.get('/fail', () => {
    throw Object.assign(new Error('from the sub-app'), { status: 418 });
  });
  return sub;
}

function mountSubApp(app: App, express: ExpressModule): void {
  app.set('parent setting', 'inherited').set('trust proxy', true);
  const inner = express().get('/identity', identity).get('/additions', additions);
  app.use('/sub', subApp(express).use('/inner', inner));
  app.use('/sub', additions);
}

const subAppRequests = [
  'place',
  'additions',
  'identity',
  'settings',
  'fail',
  'inner/identity',
  'inner/additions',
  'back',
].map((name) => ({
  path: `/sub/${name}`,
  headers: { 'x-forwarded-for': '1.2.3.4', 'x-forwarded-proto': 'https' },
}));

function addAll(app: App, mark: string): void {
  add(app.request, mark);
  add(app.response, mark);
}

export const prototypes: Behaviour[] = [
  { title: 'recognizes its requests', define: (app) => app.get('/', identity), requestsToSend: ['/'] },
  {
    title: 'keeps the classes of Node',
    define: (app) =>
      app.get('/', (req, res) => res.json([req instanceof IncomingMessage, res instanceof ServerResponse])),
    requestsToSend: ['/'],
  },
  {
    title: 'uses members that were added to its prototypes before',
    define: (app) => {
      addAll(app, 'Before');
      app.get('/', additions).get('/identity', identity);
    },
    requestsToSend: ['/', '/identity'],
  },
  {
    title: 'uses members that are added to its prototypes after',
    define: (app) => {
      app.get('/', additions).get('/identity', identity);
      return () => addAll(app, 'After');
    },
    requestsToSend: ['/', '/identity'],
  },
  {
    title: 'uses members that are added to the prototypes of all apps, before and after',
    define: (app, express) => {
      add(express.request, 'Global');
      app.get('/', additions);
      return () => add(express.response, 'Global');
    },
    requestsToSend: ['/'],
  },
  {
    title: 'uses methods overridden after',
    define: (app) => {
      app.get('/', (req, res) => res.send(req.get('x-one')));
      return () => {
        const { send } = app.response;
        app.request.get = ((name: string) => `asked for ${name}`) as Request['get'];
        app.response.send = function (this: Response, body: unknown) {
          return send.call(this, `[${String(body)}]`);
        };
      };
    },
    requestsToSend: ['/'],
  },
  {
    title: 'runs a sub-app mounted before, with members that are added to the parent after',
    define: (app, express) => {
      addAll(app, 'Before');
      mountSubApp(app, express);
      return () => addAll(app, 'After');
    },
    requestsToSend: subAppRequests,
  },
  {
    title: 'runs a sub-app mounted after',
    define: (app, express) => () => {
      mountSubApp(app, express);
      addAll(app, 'After');
    },
    requestsToSend: subAppRequests,
  },
  {
    title: 'uses prototypes that are replaced after',
    define: (app, express) => {
      app.get('/', additions).get('/identity', identity);
      return () => {
        app.request = Object.create(express.request, { app: { value: app, enumerable: true } });
        app.response = Object.create(express.response, { app: { value: app, enumerable: true } });
        addAll(app, 'After');
      };
    },
    requestsToSend: ['/', '/identity'],
  },
];
