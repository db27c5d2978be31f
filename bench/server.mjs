import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { runTopic } from './harness.mjs';

const files = fileURLToPath(new URL('fixtures/site', import.meta.url));
const css = await readFile(`${files}/small.css`, 'utf8');
const order = { id: 7, name: 'a small document', tags: ['one', 'two', 'three'] };
const body = JSON.stringify(order);

// All contestants use the same two handlers, so that only the path to them differs.
function hello(_req, res) {
  res.writeHead(200, { 'content-type': 'text/plain; charset=utf-8', 'content-length': 5 }).end('hello');
}

function echo(req, res) {
  const parts = [];
  req.on('data', (part) => parts.push(part));
  req.on('end', () => {
    const text = JSON.stringify(JSON.parse(Buffer.concat(parts).toString()));
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    res.writeHead(200, headers).end(text);
  });
}

async function app(name) {
  const { default: express } = await import(name);
  const { staticFiles } = await import('espalier/static');
  return express()
    .get('/hello', hello)
    .post('/echo', echo)
    .use('/static', staticFiles(files))
    .get('/json', (_req, res) => res.json(order))
    .post('/parsed', express.json(), (req, res) => res.json(req.body));
}

async function withClasses(name) {
  const { createServer } = await import('espalier/server');
  return createServer(await app(name));
}

async function bare() {
  const { staticFiles } = await import('espalier/static');
  const site = staticFiles(files);
  return (req, res) => {
    if (req.url === '/hello') return hello(req, res);
    if (req.url === '/echo') return echo(req, res);
    req.url = req.url.slice('/static'.length);
    return site(req, res, () => res.writeHead(404).end());
  };
}

async function fastify() {
  const { default: create } = await import('fastify');
  const { default: site } = await import('@fastify/static');
  const made = create();
  const raw = (handler) => (request, reply) => {
    reply.hijack();
    handler(request.raw, reply.raw);
  };
  made.get('/hello', raw(hello));
  made.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    scope.post('/echo', raw(echo));
  });
  made.register(site, { root: files, prefix: '/static/' });
  made.get('/json', () => order);
  made.post('/parsed', (request) => request.body);
  await made.listen({ port: 0, host: '127.0.0.1' });
  return made.server;
}

const json = { 'content-type': 'application/json' };
const future = { 'if-modified-since': 'Fri, 01 Jan 2100 00:00:00 GMT' };
const frameworks = [
  'Express 5 + createServer',
  'Express 5',
  'Express 4 + createServer',
  'Express 4',
  'fastify',
];

export const topic = {
  name: 'server',
  title: 'createServer',
  about:
    'One Express app behind `app.listen` and behind `createServer`, compared with the same handlers on bare ' +
    'node:http and in Fastify. Files are served by `espalier/static`, in Fastify by `@fastify/static`. All send the same bytes, except for ' +
    "Express's `X-Powered-By`, which is on by default. The last two tables use the JSON helpers of Express " +
    'and Fastify. That of Express also computes an ETag.',
  packages: ['express', 'express4', 'fastify', '@fastify/static'],
  ratios: ['bare node:http', 'fastify'],
  contestants: {
    'bare node:http': bare,
    'Express 5 + createServer': () => withClasses('express'),
    'Express 5': () => app('express'),
    'Express 4 + createServer': () => withClasses('express4'),
    'Express 4': () => app('express4'),
    fastify,
  },
  loads: [
    { name: 'light handler', requests: [{ path: '/hello' }], expect: { body: 'hello' } },
    { name: 'hot static file, 300 B', requests: [{ path: '/static/small.css' }], expect: { body: css } },
    {
      name: '304 for a hot file',
      requests: [{ path: '/static/small.css', headers: future }],
      expect: { status: 304 },
    },
    {
      name: 'JSON POST, read and written without helpers',
      requests: [{ method: 'POST', path: '/echo', headers: json, body }],
      expect: { body },
    },
    {
      name: 'res.json()',
      requests: [{ path: '/json' }],
      expect: { body },
      contestants: frameworks,
      ratios: ['fastify'],
    },
    {
      name: 'JSON POST, express.json() and res.json()',
      requests: [{ method: 'POST', path: '/parsed', headers: json, body }],
      expect: { body },
      contestants: frameworks,
      ratios: ['fastify'],
    },
  ],
};

await runTopic(import.meta.url, topic);
