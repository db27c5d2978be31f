import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pack, root, scratchFolder, unpack } from './tarball.ts';

const COMPILERS = ['typescript59', 'typescript6', 'typescript'];
/** The newest, which is also the fastest, checks every declaration; the others those that are used. */
const THOROUGH = 'typescript';
const RESOLUTIONS = [
  { module: 'nodenext', moduleResolution: 'nodenext' },
  { module: 'node16', moduleResolution: 'node16' },
  { module: 'preserve', moduleResolution: 'bundler' },
];
/** What a user has beside us. */
const INSTALLED = ['graphql', '@types/node', '@types/express', '@types/express4'];

/** What users write. `@ts-expect-error` stands where the compiler must object; a needless one is an error itself. */
const SOURCE = `
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Http2SecureServer, Http2Server } from 'node:http2';
import type { Server as HttpsServer } from 'node:https';
import type { Express, Request } from 'express';
import type { Express as Express4, Request as Request4 } from 'express4';
import { buildSchema } from 'graphql';
import { attachSubscriptions, createServer, graphqlHTTP, Method, type Middleware, staticFiles, Upload } from 'espalier';
import { graphqlHTTP as fromGraphql } from 'espalier/graphql';
import { createServer as fromServer } from 'espalier/server';
import { staticFiles as fromStatic } from 'espalier/static';
import { attachSubscriptions as fromSubscriptions } from 'espalier/subscriptions';

declare const app: Express;
declare const app4: Express4;
const schema = buildSchema('scalar Upload type Query { hello: String }');
const tls = { key: readFileSync('key.pem'), cert: readFileSync('cert.pem') };

// The middlewares mount under both majors without a cast.
app.use('/files', staticFiles('public'), staticFiles(new URL('file:///srv'), { html: true, maxAge: '1d' }));
app4.use('/files', staticFiles('public', true));
app.use('/graphql', graphqlHTTP(schema));
app4.use('/graphql', graphqlHTTP(schema));
app.use('/graphql', graphqlHTTP(schema, { context: (req: Request) => ({ user: req.get('authorization') }) }));
app4.use('/graphql', graphqlHTTP(schema, { context: async (req: Request4) => ({ user: req.ip }) }));
app.all('/graphql', graphqlHTTP((req) => (req.url === '/' ? schema : schema), { methods: [Method.GET, Method.POST] }));
app.use(fromStatic('public', { cache: { maxBytes: 0 } }), fromGraphql(schema, { graphiql: false, limits: { depth: 5 } }));
const middleware: Middleware = staticFiles('public');
export const names: string[] = [Upload.name, middleware.name];

// The server that is returned is the one that the options ask for.
const plain: Server = createServer(app);
const plain4: Server = createServer(app4, { keepAliveTimeout: 1000 });
const listener: Server = createServer((req, res) => res.end(req.url));
const secure: HttpsServer = fromServer(app, { ...tls, minVersion: 'TLSv1.3' });
const newer: Http2SecureServer = createServer(app4, { ...tls, http2: true, allowHTTP1: false });
const clear: Http2Server = createServer((req, res) => { res.statusCode = req.httpVersionMajor; res.end(); }, { http2: true });
export const servers = [plain4.listening, listener.listening, secure.listening, newer.listening, clear.listening];

const subscriptions = attachSubscriptions(plain.listen(3000), schema, { path: '/live', maxPayload: 1024 });
fromSubscriptions(app.listen(3000), graphqlHTTP(schema));
export const closed: Promise<void> = subscriptions.close({ drain: 1000 });

// @ts-expect-error the directory is missing
staticFiles();
// @ts-expect-error an unknown option
staticFiles('public', { htlm: true });
// @ts-expect-error a wrong value
staticFiles('public', { dotfiles: 'show' });
// @ts-expect-error a schema is no text
graphqlHTTP('type Query { hello: String }');
// @ts-expect-error an unknown option
graphqlHTTP(schema, { graphIQL: true });
// @ts-expect-error a wrong method
graphqlHTTP(schema, { methods: ['PATCH'] });
// @ts-expect-error no server
attachSubscriptions(app, schema);
// @ts-expect-error an unknown option
attachSubscriptions(plain, schema, { paths: '/live' });
// @ts-expect-error an unknown protocol
attachSubscriptions(plain, schema, { subscriptionProtocols: ['graphql-sse'] });
// @ts-expect-error no app
createServer({});
// @ts-expect-error an unknown option
createServer(app, { keepAliveTimeOut: 1 });
// @ts-expect-error an option of HTTP/2 alone
createServer(app, { allowHTTP1: true });
`;

const folder = scratchFolder();
const file = (name: string, text: string): void => writeFileSync(join(folder, name), text);

beforeAll(() => {
  unpack(pack(folder), folder);
  for (const name of INSTALLED) {
    const target = join(folder, 'node_modules', name);
    mkdirSync(dirname(target), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), target);
  }
  file('package.json', '{ "name": "consumer", "private": true }');
  for (const extension of ['ts', 'mts', 'cts']) file(`consumer.${extension}`, SOURCE);
  for (const options of RESOLUTIONS) {
    const compilerOptions = {
      ...options,
      strict: true,
      target: 'es2023',
      types: ['node'],
      noEmit: true,
      exactOptionalPropertyTypes: true,
    };
    file(`${options.module}.json`, JSON.stringify({ compilerOptions, include: ['consumer.*'] }));
  }
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(COMPILERS)('%s', (compiler) => {
  it.each(RESOLUTIONS.map(({ module }) => module))(
    'accepts what users write under %s, and objects where it must',
    (module) => {
      const tsc = join(root, 'node_modules', compiler, 'bin', 'tsc');
      const skip = String(compiler !== THOROUGH);
      expect(outputOf(tsc, ['-p', `${module}.json`, '--skipLibCheck', skip])).toBe('');
    },
    60_000,
  );
});

/** What a compiler has to say. */
function outputOf(tsc: string, args: string[]): string {
  try {
    return execFileSync(process.execPath, [tsc, ...args], { cwd: folder, encoding: 'utf8' });
  } catch (error) {
    return String((error as { stdout: string }).stdout);
  }
}
