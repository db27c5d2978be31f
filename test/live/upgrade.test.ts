/** @tags node-lines graphql */
import { once } from 'node:events';
import http, { STATUS_CODES } from 'node:http';
import { createRequire } from 'node:module';
import net, { type AddressInfo } from 'node:net';
import { buildSchema } from 'graphql';
import WebSocket, { WebSocketServer } from 'ws';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createServer } from '../../middleware/server.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { registerPath } from '../../src/live/upgrade-router.ts';
import { eachExpress } from '../express.ts';
import { connect, handshake, listen, MODERN, ready, wrap } from './client.ts';
import { serve, serveOpen, serveReady, until } from './serve.ts';
import { closeFrame, frame, TEXT, upgradeRequest, wire } from './wire.ts';

const untyped = createRequire(__filename);

const schema = buildSchema('type Query { hello: String }');

describe('the path of the upgrade', () => {
  it.each([
    ['/graphql', 101],
    ['/graphql?token=x', 101],
    ['http://127.0.0.1/graphql?token=x', 101],
    ['/graphql/', 101],
    ['/graphql/?token=x', 101],
    ['/graphql//', 404],
    ['/Graphql', 404],
    ['/graphql2', 404],
    ['/', 404],
  ])('an upgrade of %s gets %i when there is no other listener', async (path, status) => {
    const { port } = await serve();
    expect(await handshake(port, path)).toMatchObject({ status });
  });

  it('attachSubscriptions leaves upgrades of other paths to other listeners', async () => {
    const { server, port, url } = await serve();
    const other = new WebSocketServer({ noServer: true });
    server.on('upgrade', (req, socket, head) => {
      // Like Vite and many others, this listener upgrades asynchronously, and only another path.
      if (req.url === '/hmr')
        setTimeout(() => other.handleUpgrade(req, socket, head, (ws) => ws.send('"hmr"')), 20);
    });
    const client = wrap(new WebSocket(`ws://127.0.0.1:${port}/hmr`));
    expect(await client.next()).toBe('hmr');
    expect((await handshake(port, '/graphql')).status).toBe(101);
    await (await ready(url)).close();
    await client.close();
  });

  it('an upgrade that no listener claims in time gets 404', async () => {
    const { server, port } = await listen();
    const release = registerPath(server, '/graphql', (_, socket) => socket.destroy(), 60);
    const taken = new WebSocketServer({ noServer: true });
    server.on('upgrade', (req, socket, head) => {
      if (req.url === '/taken') taken.handleUpgrade(req, socket, head, () => undefined);
    });
    const client = wrap(new WebSocket(`ws://127.0.0.1:${port}/taken`));
    expect(await handshake(port, '/unclaimed')).toMatchObject({ status: 404, body: 'Not Found\n' });
    expect(client.websocket.readyState).toBe(WebSocket.OPEN);
    await client.close();
    release();
    server.close();
  });

  it('two paths of one server share one upgrade listener', async () => {
    const { server, port } = await serve();
    const second = attachSubscriptions(server, schema, { path: '/other' });
    expect(server.listenerCount('upgrade')).toBe(1);
    expect((await handshake(port, '/graphql')).status).toBe(101);
    expect((await handshake(port, '/other')).status).toBe(101);
    expect((await handshake(port, '/neither')).status).toBe(404);
    await second.close();
    expect((await handshake(port, '/other')).status).toBe(404);
    expect((await handshake(port, '/graphql')).status).toBe(101);
  });

  it('attachSubscriptions ignores an upgrade that an earlier listener has accepted', async () => {
    const { server, url } = await serve();
    const acceptingAll = new WebSocketServer({ noServer: true });
    server.prependListener('upgrade', (req, socket, head) =>
      acceptingAll.handleUpgrade(req, socket, head, (ws) => ws.send('"mine"')),
    );
    const client = wrap(new WebSocket(url));
    expect(await client.next()).toBe('mine');
    await client.close();
  });
});

describe('requests that offer another protocol', () => {
  const offer = { upgrade: 'h2c', connection: 'Upgrade, HTTP2-Settings', 'http2-settings': 'AAMAAABk' };

  it.each(['/', '/graphql'])('a request that offers h2c stays a plain request at %s', async (path) => {
    const { port } = await serve({}, (req, res) => res.end(`plain ${req.url}`));
    expect(await handshake(port, path, offer)).toMatchObject({ status: 200, body: `plain ${path}` });
  });

  it('a request that offers h2c is left to other upgrade listeners', async () => {
    const { server, port } = await serve();
    server.on('upgrade', (req, socket) => {
      if (req.headers.upgrade === 'h2c' && req.url === '/')
        socket.end('HTTP/1.1 418 No\r\ncontent-length: 0\r\n\r\n');
    });
    expect((await handshake(port, '/', offer)).status).toBe(418);
  });

  it('close() of attachSubscriptions restores the shouldUpgradeCallback of the server', async () => {
    const { server, subscriptions } = await serve();
    const fresh = http.createServer() as { shouldUpgradeCallback?: object };
    await subscriptions.close();
    expect(String((server as typeof fresh).shouldUpgradeCallback)).toBe(String(fresh.shouldUpgradeCallback));
  });
});

describe('the handshake', () => {
  it.each([
    ['an invalid key', { 'sec-websocket-key': 'x' }, 400],
    ['an unsupported version', { 'sec-websocket-version': '7' }, 426],
    ['a list of commas as subprotocols', { 'sec-websocket-protocol': ','.repeat(8000) }, 400],
  ])('the handshake is refused for %s', async (_, headers, status) => {
    const { port } = await serve();
    const response = await handshake(port, '/graphql', headers as unknown as Record<string, string>);
    expect([status, 400]).toContain(response.status);
  });

  it.each([
    ['none offered', [], undefined],
    ['none that we know', ['other'], undefined],
    ['none that is allowed', ['graphql-ws'], ['graphql-transport-ws']],
    ['all turned off', [MODERN], []],
  ] as const)(
    'the handshake is accepted and closed with 4406 when the subprotocols are %s',
    async (_, offered, allowed) => {
      const { port } = await serve({}, undefined, false, allowed && { subscriptionProtocols: allowed });
      const headers: Record<string, string> =
        offered.length === 0 ? {} : { 'Sec-WebSocket-Protocol': offered.join(', ') };
      const client = await wire(port, false, upgradeRequest(headers));
      const seen = await client.until(closeFrame(4406, 'Subprotocol not acceptable'));
      client.socket.destroy();
      const text = seen.toString('latin1');
      expect(text).toMatch(/^HTTP\/1\.1 101 /);
      expect(text).not.toMatch(/sec-websocket-protocol/i);
    },
  );

  it.each([
    [['graphql-ws', MODERN], 'graphql-ws'],
    [[MODERN, 'graphql-ws'], MODERN],
  ])('the subprotocol is chosen by the client’s order: %j', async (offered, chosen) => {
    const { client } = await serveOpen(undefined, offered);
    expect(client.websocket.protocol).toBe(chosen);
  });

  const slow = (_req: unknown, _res: unknown, next: () => void): unknown => setTimeout(next, 20);
  it.each([
    ['in the same packet as the request', [], 0],
    ['in the same packet, while a middleware decides', [slow], 0],
    ['later, while a middleware decides', [slow], 5],
  ])('attachSubscriptions keeps frames that arrive %s', async (_, middleware, wait) => {
    const { port } = await serve({ middleware });
    const init = frame(TEXT, '{"type":"connection_init"}');
    const client = await wire(port, false);
    if (wait === 0) client.socket.write(Buffer.concat([Buffer.from(upgradeRequest()), init]));
    else {
      client.socket.write(upgradeRequest());
      await new Promise((resolve) => setTimeout(resolve, wait));
      client.socket.write(init);
    }
    await client.until('{"type":"connection_ack"}');
    client.socket.destroy();
  });

  it('compression is negotiated only with perMessageDeflate', async () => {
    const offer = { 'sec-websocket-extensions': 'permessage-deflate' };
    const { port } = await serve();
    expect((await handshake(port, '/graphql', offer)).headers['sec-websocket-extensions']).toBeUndefined();
    const { port: other } = await serve({ perMessageDeflate: 'shared' });
    expect((await handshake(other, '/graphql', offer)).headers['sec-websocket-extensions']).toContain(
      'permessage-deflate',
    );
  });

  it('an upgrade pipelined behind a request without response does not end the process', async () => {
    for (const upgrade of ['websocket', 'h2c']) {
      const pass = (_req: unknown, _res: unknown, next: () => void): void => next();
      const { port } = await serve({ middleware: [pass] }, () => undefined);
      const socket = net.connect(port, '127.0.0.1').on('error', () => undefined);
      socket.write(`GET / HTTP/1.1\r\nHost: x\r\n\r\n${upgradeRequest({ Upgrade: upgrade })}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
      socket.destroy();
      expect((await handshake(port, '/graphql')).status).toBe(101);
    }
  });

  it('a reset at any moment of the upgrade does not end the process', async () => {
    const { port, subscriptions } = await serve({
      middleware: [(_req: unknown, _res: unknown, next: () => void) => setTimeout(next, 10)],
    });
    for (let wait = 0; wait < 20; wait += 2) {
      const socket = net.connect(port, '127.0.0.1').on('error', () => undefined);
      socket.write(upgradeRequest());
      await new Promise((resolve) => setTimeout(resolve, wait));
      socket.resetAndDestroy();
      await once(socket, 'close');
    }
    expect((await handshake(port, '/graphql')).status).toBe(101);
    await until(() => subscriptions.stats().connections === 0);
  });
});

describe('the origin', () => {
  it.each([
    ['no origin', undefined, undefined, 101],
    ['our own host', 'http://example.com', undefined, 101],
    ['our own host behind TLS', 'https://example.com', undefined, 101],
    ['another port', 'http://example.com:8080', undefined, 403],
    ['another host', 'https://evil.example', undefined, 403],
    ['a subdomain', 'https://example.com.evil.example', undefined, 403],
    ['an opaque origin', 'null', undefined, 403],
    ['text that is not a URL', 'example.com', undefined, 403],
    ['an origin with a path', 'http://example.com/x', undefined, 403],
    ['a listed origin', 'https://app.example', ['https://app.example'], 101],
    ['"null" when listed', 'null', ['null'], 101],
    ['our own host with a list', 'http://example.com', ['https://app.example'], 101],
    ['any origin, by option', 'https://evil.example', '*' as const, 101],
    [
      'an origin that a function allows',
      'https://app.example',
      (origin: string) => origin.endsWith('.example'),
      101,
    ],
    ['an origin that a function refuses', 'http://example.com', () => false, 403],
    [
      'an origin for which a function throws',
      'null',
      (origin: string) => new URL(origin).host === 'app.example',
      500,
    ],
    ['a function that returns a promise', 'https://evil.example', (async () => false) as never, 500],
    ['a function that rejects', 'https://evil.example', (() => Promise.reject(new Error())) as never, 500],
  ])(
    'the origin check accepts or refuses an upgrade with %s: %s',
    async (_, origin, allowedOrigins, status) => {
      const { port } = await serve(allowedOrigins && { allowedOrigins });
      const response = await handshake(port, '/graphql', { host: 'example.com', ...(origin && { origin }) });
      expect(response.status).toBe(status);
    },
  );
});

eachExpress((express) => {
  describe('the origin check behind a proxy that replaces Host', () => {
    const forwarded = { host: 'upstream:3000', origin: 'https://app.example', 'x-forwarded-proto': 'https' };

    it.each([
      ['without "trust proxy"', false, 'app.example', 403],
      ['with "trust proxy"', true, 'app.example', 101],
      ['with "trust proxy" and several hosts', true, 'app.example, upstream', 101],
      ['with "trust proxy" and another host', true, 'other.example', 403],
      ['with a "trust proxy" that trusts another address', '10.0.0.1', 'app.example', 403],
    ])('%s an upgrade of X-Forwarded-Host gets the expected status', async (_, trust, host, status) => {
      const app = express().set('trust proxy', trust);
      for (const server of [http.createServer(app), createServer(app)]) {
        await once(server.listen(0, '127.0.0.1'), 'listening');
        const { port } = server.address() as AddressInfo;
        const subscriptions = attachSubscriptions(server, graphqlHTTP(schema));
        const headers = { ...forwarded, 'x-forwarded-host': host };
        expect((await handshake(port, '/graphql', headers)).status).toBe(status);
        // Some proxies send the scheme of the WebSocket.
        const ofSocket = { ...headers, 'x-forwarded-proto': 'WSS' };
        expect((await handshake(port, '/graphql', ofSocket)).status).toBe(status);
        // The scheme counts too.
        const plain = { ...headers, 'x-forwarded-proto': 'http' };
        expect((await handshake(port, '/graphql', plain)).status).toBe(403);
        await subscriptions.close();
        server.close();
      }
    });
  });
});

describe('the response to a refused upgrade', () => {
  it.each([
    [
      '/graphql',
      {},
      403,
      'the origin "http://b.example" is not that of the host "a.example:81" and not in "allowedOrigins"',
    ],
    [
      '/graphql',
      { allowedOrigins: () => false },
      403,
      '"allowedOrigins" refused the origin "http://b.example"',
    ],
    ['/other', {}, 404, 'no subscriptions are attached to this path; attached: /graphql'],
  ])(
    'an upgrade of %s with %j gets %i, with the reason in development only',
    async (path, options, status, reason) => {
      const headers = { host: 'a.example:81', origin: 'http://b.example' };
      for (const environment of ['development', 'production', '']) {
        const { server, port } = await listen();
        process.env['NODE_ENV'] = environment;
        const subscriptions = attachSubscriptions(server, schema, options);
        const response = await handshake(port, path, headers);
        process.env['NODE_ENV'] = 'test';
        const text = STATUS_CODES[status];
        expect([response.status, response.body]).toEqual([
          status,
          environment === 'development' ? `${text}: ${reason}\n` : `${text}\n`,
        ]);
        await subscriptions.close();
        server.close();
      }
    },
  );
});

describe('allowedOrigins', () => {
  it('attachSubscriptions accepts origins of apps and extensions', async () => {
    const allowedOrigins = [
      'capacitor://localhost',
      'chrome-extension://abcdef',
      'https://a.example:8443',
      'null',
    ];
    const { port } = await serve({ allowedOrigins });
    for (const origin of allowedOrigins) {
      expect((await handshake(port, '/graphql', { host: 'b', origin })).status).toBe(101);
    }
  });

  it.each([
    ['reads those of the handler', {}, 'https://app.example', 101],
    ['refuses other origins', {}, 'https://evil.example', 403],
    ['replaces those of the handler by its own', { allowedOrigins: [] }, 'https://app.example', 403],
  ])('attachSubscriptions %s', async (_, options, origin, status) => {
    const { server, port } = await listen();
    const handler = graphqlHTTP(schema, { allowedOrigins: ['https://app.example'] });
    const subscriptions = attachSubscriptions(server, handler, options);
    expect((await handshake(port, '/graphql', { host: 'api.example', origin })).status).toBe(status);
    await subscriptions.close();
  });
});

describe('allowedHosts of the graphqlHTTP handler', () => {
  it('an upgrade with another Host gets 421, as a request does', async () => {
    const { server, port } = await listen();
    const subscriptions = attachSubscriptions(server, graphqlHTTP(schema, { allowedHosts: ['api.example'] }));
    const origin = 'http://evil.example';
    expect((await handshake(port, '/graphql', { host: 'evil.example', origin })).status).toBe(421);
    expect((await handshake(port, '/graphql', { host: 'evil.example' })).status).toBe(421);
    expect((await handshake(port, '/graphql', { host: 'API.example' })).status).toBe(101);
    await subscriptions.close();
    server.close();
  });
});

describe('the origin over TLS', () => {
  it.each([
    ['https', '101'],
    ['http', '403'],
  ])('an upgrade over TLS from the own host with the scheme %s gets %s', async (scheme, status) => {
    const { port } = await serve({}, undefined, true);
    const headers = { 'Sec-WebSocket-Protocol': MODERN, Origin: `${scheme}://x` };
    const client = await wire(port, true, upgradeRequest(headers));
    const seen = await client.until('\r\n\r\n');
    client.socket.destroy();
    expect(seen.toString('latin1').slice(9, 12)).toBe(status);
  });
});

describe('middleware of the upgrade', () => {
  type Next = (error?: unknown) => void;
  it.each([
    [
      'a response',
      (_: http.IncomingMessage, res: http.ServerResponse) =>
        res.writeHead(401, { 'x-why': 'token' }).end('who?'),
      401,
      'who?',
    ],
    [
      'an error with a status',
      (_req: unknown, _res: unknown, next: Next) => next(Object.assign(new Error('x'), { status: 429 })),
      429,
      'Too Many Requests\n',
    ],
    [
      'an error',
      (_req: unknown, _res: unknown, next: Next) => next(new Error('secret')),
      500,
      'Internal Server Error\n',
    ],
    [
      'a throw',
      () => {
        throw new Error('secret');
      },
      500,
      'Internal Server Error\n',
    ],
    [
      'a rejection',
      async () => {
        throw Object.assign(new Error('x'), { statusCode: 403 });
      },
      403,
      'Forbidden\n',
    ],
    [
      'a throw of undefined',
      () => {
        throw undefined;
      },
      500,
      'Internal Server Error\n',
    ],
    ['a rejection without a reason', () => Promise.reject(), 500, 'Internal Server Error\n'],
    ['no response and no next', () => undefined, 503, 'Service Unavailable\n'],
  ])('middleware of the upgrade refuses with %s', async (_, middleware, status, body) => {
    const { port, subscriptions } = await serve({
      middleware: [middleware as never],
      limits: { initTimeout: 40 },
    });
    expect(await handshake(port, '/graphql')).toMatchObject({ status, body });
    expect(subscriptions.stats().connections).toBe(0);
  });

  it('close() refuses the upgrades that wait for a middleware with 503, so that the server can close', async () => {
    let waiting = 0;
    const { server, port, subscriptions } = await serve({ middleware: [() => void waiting++] });
    const refused = handshake(port, '/graphql');
    await until(() => waiting === 1);
    await subscriptions.close();
    expect(await refused).toMatchObject({ status: 503 });
    await new Promise((resolve) => server.close(resolve));
  });

  eachExpress((express, major) => {
    it('middleware of the upgrade may be Express middleware: status, redirect, sessions and passport', async () => {
      const session = untyped('express-session');
      const passport = new (untyped('passport').Passport)();
      passport.serializeUser((user: { name: string }, done: (error: unknown, id: string) => void) =>
        done(null, user.name),
      );
      passport.deserializeUser((name: string, done: (error: unknown, user: object) => void) =>
        done(null, { name }),
      );
      passport.use({
        name: 'query',
        authenticate(this: { success(user: object): void; fail(): void }, req: { query: { user?: string } }) {
          if (req.query.user === undefined) this.fail();
          else this.success({ name: req.query.user });
        },
      });
      const sessions = session({ secret: 's', resave: false, saveUninitialized: false });
      const chain = [sessions, passport.initialize(), passport.session()];
      const app = express();
      app.use(chain);
      app.get('/login', passport.authenticate('query'), (_req, res) => void res.send('in'));
      const handler = graphqlHTTP(schema, {
        context: (source: { request?: { user?: unknown } }) => ({ user: source.request?.user }),
      } as never);
      const server = app.listen(0);
      await once(server, 'listening');
      const { port } = server.address() as net.AddressInfo;
      const guard = (
        req: { user?: unknown; query: { go?: string } },
        res: { status(code: number): { json(body: object): void }; redirect(url: string): void },
        next: Next,
      ): void => {
        if (req.query.go !== undefined) res.redirect(`/${req.query.go}`);
        else if (req.user === undefined) res.status(401).json({ express: major });
        else next();
      };
      const users: unknown[] = [];
      const subscriptions = attachSubscriptions(server, handler, {
        middleware: [...chain, guard as never],
        onConnect: ({ context }) => void users.push((context as { user: unknown }).user),
      });
      expect(await handshake(port, '/graphql')).toMatchObject({ status: 401, body: `{"express":${major}}` });
      expect(await handshake(port, '/graphql?go=login')).toMatchObject({
        status: 302,
        headers: { location: '/login' },
      });
      const login = await fetch(`http://127.0.0.1:${port}/login?user=ann`);
      const cookie = (login.headers.get('set-cookie') ?? '').split(';')[0] as string;
      const client = await connect(`ws://127.0.0.1:${port}/graphql`, MODERN, { headers: { cookie } });
      client.send({ type: 'connection_init' });
      await client.next();
      expect(users).toEqual([{ name: 'ann' }]);
      await subscriptions.close();
      server.close();
      server.closeAllConnections();
    });
  });
});

describe('limits.connections', () => {
  it('an upgrade above limits.connections gets 503, and the next is accepted when a client has disconnected', async () => {
    const { client, port, subscriptions } = await serveReady({ limits: { connections: 1 } });
    expect(await handshake(port, '/graphql')).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    await client.close();
    await until(() => subscriptions.stats().connections === 0);
    expect((await handshake(port, '/graphql')).status).toBe(101);
  });
});
