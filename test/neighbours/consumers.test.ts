/** @tags once */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pack, root, scratchFolder, type Tarball, unpack } from '../tarball.ts';

/** The newest compiler, which is also the fastest, checks every declaration; the others check those that are used. */
const THOROUGH = 'typescript';
/** The files without "type" that TypeScript reads as ES module and as CommonJS; a .ts file is one of them. */
const EXTENSIONS = ['mts', 'cts'];
const NODE16 = { module: 'node16', moduleResolution: 'node16' };
const NODENEXT = { module: 'nodenext', moduleResolution: 'nodenext' };
const BUNDLER = { module: 'preserve', moduleResolution: 'bundler' };
/** Compilers from version 6 on report node10 as deprecated or lack it. */
const NODE10 = { module: 'commonjs', moduleResolution: 'node10', esModuleInterop: true };
const SETUPS = [
  // Its nodenext is still the same as node16: both lack the condition "module-sync".
  ['typescript54', 'graphql', [NODENEXT]],
  // The last one with node10. Its nodenext is that of version 6.
  ['typescript59', 'graphql', [BUNDLER, NODE10]],
  // Version 7 has its rules in another language.
  ['typescript6', 'graphql', [NODENEXT]],
  [THOROUGH, 'graphql', [NODENEXT, NODE16, BUNDLER]],
  // How a compiler finds espalier does not depend on graphql.
  [THOROUGH, 'graphql17', [NODENEXT]],
] as const;
/** Packages of types that a user has installed. */
const INSTALLED = ['@types/node', '@types/express', '@types/express4', '@types/ws'];

/** Code of users. The compiler must report an error after each `@ts-expect-error`; one without an error is an error itself. */
const SOURCE = `
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Http2SecureServer, Http2Server } from 'node:http2';
import type { Server as HttpsServer } from 'node:https';
import type { Express, NextFunction, Request, RequestHandler, Response } from 'express';
import type { Express as Express4, Request as Request4 } from 'express4';
import { buildSchema } from 'graphql';
import { WebSocketServer } from 'ws';
import {
  attachSubscriptions, type ConnectingSubscription, createServer, type GraphQLOptions, type GraphQLRequest, graphqlHTTP, Method, type Middleware,
  type StaticFilesOptions, staticFiles, type SubscriptionOptions, Upload, type UploadedFile,
} from 'espalier';
import { graphqlHTTP as fromGraphql } from 'espalier/graphql';
import { createPubSub } from 'espalier/pubsub';
import { createServer as fromServer } from 'espalier/server';
import { staticFiles as fromStatic } from 'espalier/static';
import { attachSubscriptions as fromSubscriptions } from 'espalier/subscriptions';

declare const app: Express;
declare const app4: Express4;
const schema = buildSchema('scalar Upload type Query { hello: String }');
const tls = { key: readFileSync('key.pem'), cert: readFileSync('cert.pem') };

// The middlewares mount under both majors without a cast.
app.use('/files', staticFiles('public'), staticFiles(new URL('file:///srv'), { html: true, cacheControl: '1d' }));
app4.use('/files', staticFiles('public', true));
app.use('/graphql', graphqlHTTP(schema));
app4.use('/graphql', graphqlHTTP(schema));
app.use('/graphql', graphqlHTTP(schema, { context: (req: Request) => ({ user: req.get('authorization') }) }));
app4.use('/graphql', graphqlHTTP(schema, { context: async (req: Request4) => ({ user: req.ip }) }));
app.all('/graphql', graphqlHTTP((req) => (req.url === '/' ? schema : schema), { methods: [Method.GET, Method.POST] }));
app.use(fromStatic('public', { cache: { maxBytes: 0 } }), fromGraphql(schema, { graphiql: false, limits: { depth: 5 } }));
const middleware: Middleware = staticFiles('public');
export const names: string[] = [Upload.name, middleware.name];

// The type of the returned server depends on the options.
const plain: Server = createServer(app);
const plain4: Server = createServer(app4, { keepAliveTimeout: 1000 });
const listener: Server = createServer((req, res) => res.end(req.url));
const secure: HttpsServer = fromServer(app, { ...tls, minVersion: 'TLSv1.3' });
const perhaps: Server = createServer(app, process.env['TLS'] === '1' ? tls : {});
const newer: Http2SecureServer = createServer(app4, { ...tls, http2: true, allowHTTP1: false });
const clear: Http2Server = createServer((req, res) => { res.statusCode = req.httpVersionMajor; res.end(); }, { http2: true });
export const servers = [plain4.listening, perhaps.listening, listener.listening, secure.listening, newer.listening, clear.listening];

const subscriptions = attachSubscriptions(plain.listen(3000), schema, { path: '/live', limits: { messageBytes: 1024 } });
fromSubscriptions(app.listen(3000), graphqlHTTP(schema));
export const closed: Promise<void> = subscriptions.close({ drain: 1000 });

// Hooks know their parameters, and may declare those of Express.
interface Context { user: string }
interface Staff extends GraphQLRequest { state: { staff?: boolean } }
app.use(staticFiles('public', { setHeaders: (res, path, { size }) => res.setHeader('x', path + size.toFixed()) }));
app.use(staticFiles('public', { setHeaders: (res: Response, path: string) => res.set('x', path) }));
app.use(graphqlHTTP((req: Request) => (req.hostname === 'a' ? schema : schema), { graphiql: (req) => req.hostname === 'a' }));
app4.use(graphqlHTTP(async (req: Request4) => schema, { graphiql: (req) => req.ip === '127.0.0.1' }));
app.use(graphqlHTTP(schema, { graphiql: async (req: Request) => req.hostname === 'a' && { endpoint: req.path } }));
app.use(graphqlHTTP(schema, { context: (req) => ({ user: req.state['user'] }), rootValue: (req) => ({ hello: req.url }) }));
app.use(graphqlHTTP(schema, { context: (req: Staff) => ({ staff: req.state.staff === true }), graphiql: (req) => req.state.staff === true }));
app.use(graphqlHTTP(schema, { fieldResolver: (source, args, context, info) => info.fieldName, engine: (args) => ({ data: { hello: args.operationName } }) }));
app.use(graphqlHTTP(schema, {
  fieldResolver: (source: { hello: string }, args, context: Context, info) => source.hello + context.user + info.fieldName,
  typeResolver: (value: { kind: string }) => value.kind,
}));
// Sockets call context, rootValue and introspection too: unless declared, their argument has what both transports have.
app.use(graphqlHTTP(schema, { context: async (req, { transport, operation }) => ({
  user: req.headers.authorization, path: req.url.length, address: req.socket.remoteAddress, tenant: req.state['tenant'], transport, operation,
}) }));
app.use(graphqlHTTP(schema, {
  context: (req: { headers: { authorization?: string }; session?: { user: string } }) => req.session?.user,
  graphiql: (req) => req.method === 'GET' && req.state['pretty'] === true,
}));
app.use(graphqlHTTP(schema, { context: (req: Request) => req.ip, graphiql: (req) => req.hostname === 'a' }));
app.use(graphqlHTTP(schema, { introspection: (req) => req.socket.remoteAddress === '127.0.0.1' }));
const declared: GraphQLOptions<Request> = { context: (req) => req.ip, graphiql: (req) => req.hostname === 'a' };
const common: GraphQLOptions = { context: ({ state }) => state, graphiql: (req) => req.method === 'GET' };
app.use(graphqlHTTP(schema, declared), graphqlHTTP(schema, common));
attachSubscriptions(plain, schema, {
  context: ({ protocol, headers, state, url, socket }) => [protocol, headers.cookie, state, url.length, socket.remoteAddress],
});
graphqlHTTP(schema, { onError: (error, { socket, operationName }) => [error, socket?.protocol, operationName] });
declare const session: RequestHandler;
attachSubscriptions(plain, graphqlHTTP(schema), {
  middleware: [session, (req, res, next) => (req.url === '/' ? res.end() : next()), (req: Request, res: Response, next: NextFunction) => next()],
  onConnect: async ({ connectionParams: { token }, request }) => (token === request.url ? undefined : false),
  share: (context: Context, { query }) => context.user + query,
}).disconnect(({ context, connectionParams }) => context === connectionParams, 4403);
const sockets = attachSubscriptions(plain, schema, {
  onConnect({ context }: ConnectingSubscription<Context>) { context.user = 'Ada'; },
  onClose: ({ context }: { context: Context }, { code }) => context.user + code.toFixed(),
  allowedOrigins: (origin, { headers }) => origin === headers.host,
});
new WebSocketServer({ noServer: true }).on('connection', graphqlHTTP(schema).websocketHandler);
sockets.disconnect(({ context }: ConnectingSubscription<Context>) => context.user === 'Ada');
sockets.disconnect(({ context }: { context: Context }) => context.user === 'Ada');
export const save = ({ file }: { file: Upload }): Promise<number> => file.saveTo(file.filename);
export const read = (file: UploadedFile): Promise<string> => file.text();
export const copy = async (file: UploadedFile): Promise<Blob> => new Blob([await file.bytes()]);
createPubSub().publish('any', 1);
for (const topic of [createPubSub<{ added: string }>().subscribe('added')]) topic.next().then(({ value }) => value.length);

// undefined means the default, also under exactOptionalPropertyTypes.
const on: true | undefined = process.env['ON'] === '1' ? true : undefined;
const most: number | undefined = undefined;
export const open: [StaticFilesOptions, GraphQLOptions, SubscriptionOptions] = [
  { html: on, cache: { maxBytes: most } },
  { graphiql: on, limits: { depth: most }, uploads: { maxFiles: most } },
  { perMessageDeflate: on && 'shared', limits: { messageBytes: most } },
];

// @ts-expect-error the directory is missing
staticFiles();
// @ts-expect-error an unknown option
staticFiles('public', { htlm: true });
// @ts-expect-error a wrong value
staticFiles('public', { dotfiles: 'show' });
// @ts-expect-error a schema is not a string
graphqlHTTP('type Query { hello: String }');
// @ts-expect-error an unknown option
graphqlHTTP(schema, { graphIQL: true });
// @ts-expect-error a wrong method
graphqlHTTP(schema, { methods: ['PATCH'] });
// @ts-expect-error a wrong result type
graphqlHTTP(schema, { graphiql: (req: Request) => req.hostname });
// @ts-expect-error a wrong result type
graphqlHTTP((req: Request) => req.hostname);
// @ts-expect-error a WebSocket has no method
graphqlHTTP(schema, { context: (req) => ({ method: req.method }) });
// @ts-expect-error a request has no protocol of a WebSocket
graphqlHTTP(schema, { context: (req) => ({ protocol: req.protocol }) });
// @ts-expect-error a WebSocket has no originalUrl
graphqlHTTP(schema, { rootValue: (req) => ({ hello: req.originalUrl }) });
// @ts-expect-error a WebSocket is never complete
graphqlHTTP(schema, { introspection: (req) => req.complete });
// @ts-expect-error not a function
graphqlHTTP(schema, { fieldResolver: 'hello' });
// @ts-expect-error not a server
attachSubscriptions(app, schema);
// @ts-expect-error neither a schema nor a handler that graphqlHTTP made
attachSubscriptions(plain, app);
// @ts-expect-error not a middleware
attachSubscriptions(plain, schema, { middleware: ['session'] });
// @ts-expect-error a wrong result type
attachSubscriptions(plain, schema, { share: () => ({}) });
// @ts-expect-error an unknown topic
createPubSub<{ added: string }>().publish('removed', '');
// @ts-expect-error an unknown option
attachSubscriptions(plain, schema, { paths: '/live' });
// @ts-expect-error an unknown protocol
graphqlHTTP(schema, { subscriptionProtocols: ['graphql-sse'] });
// @ts-expect-error not an app
createServer({});
// @ts-expect-error an unknown option
createServer(app, { keepAliveTimeOut: 1 });
// @ts-expect-error an option for HTTP/2 only
createServer(app, { allowHTTP1: true });
`;

const folder = scratchFolder();

/** Returns the path of a development dependency: of the repository, or one that npm run test:all installs. */
function folderOf(name: string): string {
  const installed = [root, __dirname].map((parent) => join(parent, 'node_modules', name)).find(existsSync);
  if (installed === undefined) throw new Error(`${name} is missing: run npm ci in test/neighbours`);
  return installed;
}

/** Makes a user's project below `folder`, with one major version of graphql. */
function makeProject(graphql: string, tarball: Tarball): void {
  const project = join(folder, graphql);
  const file = (name: string, text: string): void => writeFileSync(join(project, name), text);
  unpack(tarball, project);
  for (const [name, source] of [...INSTALLED.map((name) => [name, name] as const), ['graphql', graphql]]) {
    const target = join(project, 'node_modules', name as string);
    mkdirSync(dirname(target), { recursive: true });
    symlinkSync(folderOf(source as string), target);
  }
  file('package.json', '{ "name": "consumer", "private": true }');
  for (const extension of EXTENSIONS) file(`consumer.${extension}`, SOURCE);
  for (const options of [NODENEXT, NODE16, BUNDLER, NODE10]) {
    const compilerOptions = {
      ...options,
      strict: true,
      target: 'es2022',
      types: ['node'],
      noEmit: true,
      exactOptionalPropertyTypes: true,
    };
    file(`${options.module}.json`, JSON.stringify({ compilerOptions, include: ['consumer.*'] }));
  }
}

beforeAll(() => {
  const tarball = pack();
  for (const graphql of new Set(SETUPS.map(([, name]) => name))) makeProject(graphql, tarball);
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('TypeScript 5.4 accepts the declarations of every entry without skipLibCheck', () => {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: object };
  const entries = Object.keys(exports).filter((path) => path !== './package.json');
  expect(entries.length).toBeGreaterThan(10);
  const lines = entries.map((path, index) => `export * as part${index} from '${join('espalier', path)}';\n`);
  const project = join(folder, 'graphql');
  // As CommonJS, which may not import an ES module: otherwise its declarations are the same.
  writeFileSync(join(project, 'entries.cts'), lines.join(''));
  const settings = { extends: './nodenext.json', include: ['entries.cts'] };
  writeFileSync(join(project, 'entries.json'), JSON.stringify(settings));
  const tsc = join(folderOf('typescript54'), 'bin', 'tsc');
  expect(outputOf(project, [tsc, '-p', 'entries.json', '--skipLibCheck', 'false'])).toBe('');
}, 60_000);

describe.each(SETUPS)('%s with %s', (compiler, graphql, resolutions) => {
  it.each(resolutions.map(({ module }) => module))(
    `${compiler} with ${graphql} accepts the code of users under module %s, and reports their mistakes`,
    (module) => {
      const tsc = join(folderOf(compiler), 'bin', 'tsc');
      const skip = String(compiler !== THOROUGH);
      expect(outputOf(join(folder, graphql), [tsc, '-p', `${module}.json`, '--skipLibCheck', skip])).toBe('');
    },
    60_000,
  );
});

/** The messages of a compiler. */
function outputOf(cwd: string, args: string[]): string {
  try {
    return execFileSync(process.execPath, args, { cwd, encoding: 'utf8' });
  } catch (error) {
    return String((error as { stdout: string }).stdout);
  }
}
