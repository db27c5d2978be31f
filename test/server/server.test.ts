/** @tags node-lines */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import * as https from 'node:https';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import connect from 'connect';
import request from 'supertest';
import { createServer } from '../../middleware/server.ts';
import {
  requestHttp1,
  requestHttp2,
  requestHttps,
  requestSecureHttp2,
  serving,
  tls,
  trusted,
} from '../exchange.ts';
import { eachExpress } from '../express.ts';
import { until } from '../until.ts';

class LoudRequest extends http.IncomingMessage {
  readonly createdBy = 'loud';
  shout(): string {
    return `${this.url}!`;
  }
  // Express defines this too.
  accepts(): string {
    return 'never reached';
  }
}
class LoudResponse extends http.ServerResponse {
  override writeHead(...given: [number]): this {
    this.setHeader('x-loud', 'yes');
    return super.writeHead(...given);
  }
}

/** Writes a response without an end, in chunks that wait for the last one. */
function writeWithoutEnd(res: NodeJS.WritableStream): void {
  const chunk = Buffer.alloc(64 * 1024);
  const writeNext = (error?: Error | null): void => {
    if (!error) res.write(chunk, writeNext);
  };
  writeNext();
}

const endUnread = (res: NodeJS.WritableStream): unknown => res.end(Buffer.alloc(100 * 1024));

/** The timer of the open connection of a server: 0 none, 1 retransmission, 2 keep-alive (proc(5), `/proc/net/tcp`). */
function timerOf(port: number): number | undefined {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const lines = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`/proc/net/${name}`, 'utf8').split('\n'));
  const line = lines.find((text) =>
    new RegExp(`^ *\\d+: [0-9A-F]+:${hex} [0-9A-F]+:[0-9A-F]+ 01 `).test(text),
  );
  return line === undefined ? undefined : Number.parseInt(line.trim().split(/\s+/)[5] as string, 16);
}

describe('createServer', () => {
  const plain = (_req: unknown, res: { end(text: string): unknown }): unknown => res.end('hello');

  it('createServer creates a server of node:http, or of node:https with any TLS option', () => {
    const options: https.ServerOptions = { minVersion: 'TLSv1.3' };
    expect(createServer(plain)).toBeInstanceOf(http.Server);
    expect(createServer(plain, tls)).toBeInstanceOf(https.Server);
    expect(createServer(plain, options)).toBeInstanceOf(https.Server);
  });

  it('createServer passes the options of Node', () => {
    const server = createServer(plain, { keepAliveTimeout: 1234, requestTimeout: 2345, maxHeaderSize: 4096 });
    expect(server).toMatchObject({ keepAliveTimeout: 1234, requestTimeout: 2345, maxHeaderSize: 4096 });
  });

  it('createServer does not change requests of a listener or a Connect app', async () => {
    const prototypes: unknown[] = [];
    const note = (req: http.IncomingMessage, res: http.ServerResponse): unknown => {
      prototypes.push(Object.getPrototypeOf(req), Object.getPrototypeOf(res));
      return res.end('hello');
    };
    await request(createServer(note)).get('/').expect(200, 'hello');
    await request(createServer(connect().use(note)))
      .get('/')
      .expect(200, 'hello');
    const node = [http.IncomingMessage.prototype, http.ServerResponse.prototype];
    expect(prototypes).toEqual([...node, ...node]);
  });

  it('createServer adds the headers of HTTP/1.1 to HTTP/2 requests', async () => {
    const app = (
      req: http.IncomingMessage | http2.Http2ServerRequest,
      res: http.ServerResponse | http2.Http2ServerResponse,
    ): void => {
      const { host, 'transfer-encoding': coding, 'content-length': length } = req.headers;
      res.end(JSON.stringify([host, coding, length]));
    };
    await serving(createServer(app, { http2: true }), async (port) => {
      const get = await requestHttp2(port, { path: '/' });
      expect(JSON.parse(get.body)).toEqual(['site.test', null, null]);
      const streamed = await requestHttp2(port, { method: 'POST', path: '/', body: 'words' });
      expect(JSON.parse(streamed.body)).toEqual(['site.test', 'chunked', null]);
      const sized = {
        method: 'POST',
        path: '/',
        headers: { 'content-length': '5', host: 'other.test' },
        body: 'words',
      };
      expect(JSON.parse((await requestHttp2(port, sized)).body)).toEqual(['site.test', null, '5']);
    });
  });
});

eachExpress((express) => {
  const hello = () => {
    const app = express();
    app.get('/', (req, res) => {
      res.json([req.protocol, req.secure, req.hostname, req.httpVersion]);
    });
    return app;
  };

  it('createServer creates the classes of an app once for all its servers', async () => {
    const app = hello();
    const first = createServer(app);
    const { request: ofRequests, response } = app;
    await request(first).get('/').expect(200);
    await request(createServer(app)).get('/').expect(200);
    createServer(app, tls);
    createServer(app, { ...tls, http2: true });
    expect([app.request, app.response]).toEqual([ofRequests, response]);
    expect(app.request).toBe(ofRequests);
  });

  it('createServer does not change Node, Express, other apps or app.listen', async () => {
    const shared = [
      http,
      http.IncomingMessage.prototype,
      http.ServerResponse.prototype,
      express.request,
      express.response,
    ];
    const readState = () =>
      shared.map((value) => [Reflect.ownKeys(value), Object.getPrototypeOf(value), http.createServer]);
    const before = readState();
    const other = hello();
    const { request: ofOther } = other;
    const app = hello();
    const { listen } = app;
    createServer(app);
    expect(readState()).toEqual(before);
    expect(other.request).toBe(ofOther);
    expect(app.listen).toBe(listen);
    const server = app.listen(0);
    await once(server, 'listening');
    await serving(server, async (port) => expect((await requestHttp1(port, { path: '/' })).status).toBe(200));
  });

  it('createServer creates a TLS server', async () => {
    await serving(createServer(hello(), tls), async (port) => {
      const { body } = await requestHttps(port, { path: '/' });
      expect(JSON.parse(body)).toEqual(['https', true, 'site.test', '1.1']);
    });
  });

  it('createServer serves HTTP/2 and HTTP/1.1 on one port', async () => {
    await serving(createServer(hello(), { ...tls, http2: true }), async (port) => {
      const newer = await requestSecureHttp2(port, { path: '/' });
      expect(JSON.parse(newer.body)).toEqual(['https', true, 'site.test', '2.0']);
      const older = await requestHttps(port, { path: '/' });
      expect(JSON.parse(older.body)).toEqual(['https', true, 'site.test', '1.1']);
    });
  });

  it('createServer refuses HTTP/1.1 with allowHTTP1: false', async () => {
    const server = createServer(hello(), { ...tls, http2: true, allowHTTP1: false });
    await serving(server, async (port) => {
      const socket = connectTls({ ...trusted, port, ALPNProtocols: ['http/1.1'] });
      await expect(once(socket, 'secureConnect')).rejects.toThrow();
    });
  });

  it('createServer extends the classes of the user', async () => {
    const app = express();
    app.get('/', (req, res) => {
      const loud = req as unknown as LoudRequest;
      res.json([
        loud.createdBy,
        loud.shout(),
        req.accepts('json'),
        Object.getPrototypeOf(req) === app.request,
      ]);
    });
    const classes = { IncomingMessage: LoudRequest, ServerResponse: LoudResponse };
    const server = createServer(app, classes);
    const { body, headers } = await request(server).get('/');
    expect(body).toEqual(['loud', '/!', 'json', true]);
    expect(headers['x-loud']).toBe('yes');
    await request(createServer(app, classes)).get('/').expect('x-loud', 'yes');
    await request(createServer(app)).get('/').expect('x-loud', 'yes');
  });

  it.each(['before', 'after'])(
    'createServer serves an app that was mounted in another app %s',
    async (when) => {
      const [parent, sub] = [express(), express()];
      for (const app of [parent, sub]) {
        app.get('/', (req, res) => {
          res.json([
            req.app === app,
            Object.getPrototypeOf(req) === app.request,
            Reflect.get(req, 'ofParent') ?? 'none',
          ]);
        });
      }
      if (when === 'before') parent.use('/sub', sub);
      const [ofSub, ofParent] = [createServer(sub), createServer(parent)];
      if (when === 'after') parent.use('/sub', sub);
      Object.assign(parent.request, { ofParent: 'added' });
      await request(ofParent).get('/').expect([true, true, 'added']);
      await request(ofParent).get('/sub').expect([true, true, 'added']);
      await request(ofSub).get('/').expect([true, true, 'added']);
    },
  );

  it('createServer extends the HTTP/2 classes of the user', async () => {
    class Loud2 extends http2.Http2ServerRequest {
      shout(): string {
        return `${this.url}!`;
      }
    }
    const app = express();
    app.get('/', (req, res) => {
      res.send(Reflect.apply(Reflect.get(req, 'shout'), req, []));
    });
    await serving(createServer(app, { http2: true, Http2ServerRequest: Loud2 }), async (port) => {
      expect((await requestHttp2(port, { path: '/' })).body).toBe('/!');
    });
  });

  it.each([
    ['without', {}, { 'x-own': 'kept' }],
    ['with a class of the user', { Http2ServerResponse: http2.Http2ServerResponse }, { 'x-own': 'kept' }],
  ])(
    'createServer removes headers of HTTP/1.1 connections from responses over HTTP/2, %s',
    async (_name, options, kept) => {
      const app = express();
      const ofConnection = { 'Keep-Alive': 'timeout=5', 'Transfer-Encoding': 'chunked', Upgrade: 'h2c' };
      app.use((_req, res, next) => {
        res.set({ ...ofConnection, ...kept });
        next();
      });
      app.get('/send', (_req, res) => void res.send('sent'));
      app.get('/head', (_req, res) => void res.writeHead(201, { 'Proxy-Connection': 'close' }).end('sent'));
      app.get('/empty', (_req, res) => void res.status(204).end());
      await serving(createServer(app, { ...options, http2: true }), async (port) => {
        for (const [path, status, body] of [
          ['/send', 200, 'sent'],
          ['/head', 201, 'sent'],
          ['/empty', 204, ''],
          ['/unknown', 404, expect.stringContaining('Cannot GET')],
        ] as const) {
          const response = await requestHttp2(port, { path });
          expect(response).toMatchObject({ status, body, headers: kept });
          for (const name of Object.keys(ofConnection))
            expect(response.headers).not.toHaveProperty(name.toLowerCase());
        }
      });
    },
  );

  it('createServer ignores a Host that differs from the authority of a request over HTTP/2', async () => {
    await serving(createServer(hello(), { http2: true }), async (port) => {
      const { body } = await requestHttp2(port, { path: '/', headers: { host: 'other.test' } });
      expect(JSON.parse(body)).toEqual(['http', false, 'site.test', '2.0']);
    });
  });

  it('createServer joins several values of a header that has one line over HTTP/2', async () => {
    const app = express();
    app.get('/', (_req, res) => {
      res.append('Content-Language', 'de').append('Content-Language', 'fr');
      res.append('Set-Cookie', 'a=1').append('Set-Cookie', 'b=2').set('Keep-Alive', 'timeout=5').send('sent');
    });
    await serving(createServer(app, { http2: true }), async (port) => {
      const { status, headers } = await requestHttp2(port, { path: '/' });
      expect(status).toBe(200);
      expect(headers).toMatchObject({ 'content-language': 'de, fr', 'set-cookie': ['a=1', 'b=2'] });
    });
  });

  it('createServer reports an abort to a handler over HTTP/2', async () => {
    const app = express();
    const arrived = new Promise<void>((resolve) => {
      app.get('/', (_req, res, next) => {
        res.once('close', next);
        resolve();
      });
    });
    const reported = new Promise<unknown>((resolve) => {
      app.get('/', (_req, res) => res.sendFile(__filename, resolve));
    });
    await serving(createServer(app, { http2: true }), async (port) => {
      const session = http2.connect(`http://localhost:${port}`);
      const stream = session.request({ ':path': '/' });
      await arrived;
      stream.close(http2.constants.NGHTTP2_CANCEL);
      expect(await reported).toMatchObject({ code: 'ECONNABORTED' });
      session.destroy();
    });
  });

  it.each([
    ['NO_ERROR', http2.constants.NGHTTP2_NO_ERROR, 'while the handler writes', writeWithoutEnd],
    ['NO_ERROR', http2.constants.NGHTTP2_NO_ERROR, 'after the response has ended', endUnread],
    ['CANCEL', http2.constants.NGHTTP2_CANCEL, 'while the handler writes', writeWithoutEnd],
  ])(
    'createServer closes streams and connections over HTTP/2 after resets with %s (%d) %s',
    async (_code, code, _when, write) => {
      let closed = 0;
      const app = express();
      app.get('/', (_req, res) => {
        res.on('close', () => closed++);
        write(res);
      });
      const server = createServer(app, { http2: true });
      const sessions: http2.Http2Session[] = [];
      server.on('session', (session) => sessions.push(session));
      await serving(server, async (port) => {
        const session = http2.connect(`http://localhost:${port}`);
        // Streams that are not read: their bytes wait for the flow-control window.
        const streams = Array.from({ length: 20 }, () => session.request({ ':path': '/' }));
        await Promise.all(streams.map((stream) => once(stream, 'response')));
        for (const stream of streams) stream.close(code);
        session.close();
        // Node 24 keeps a stream of the client, so the session does not end the connection.
        setImmediate(() => session.destroy());
        try {
          await until(() => closed === streams.length && server.stats().connections === 0);
        } finally {
          for (const open of sessions) open.destroy();
        }
      });
    },
  );

  it.each([
    ['TLS', tls],
    ['cleartext', {}],
  ])(
    'createServer probes idle connections over HTTP/2 by TCP keep-alive, over %s',
    async (_name, options) => {
      for (const keepAlive of [undefined, false]) {
        const server = createServer((_req, res) => res.end(), { ...options, http2: true, keepAlive });
        await serving(server, async (port) => {
          const scheme = options === tls ? 'https' : 'http';
          const session = http2.connect(`${scheme}://localhost:${port}`, trusted);
          await once(session, 'remoteSettings');
          const expected = keepAlive === undefined ? 2 : 0;
          await until(() => timerOf(port) === expected);
          session.destroy();
        });
      }
    },
  );

  it('createServer emits the upgrade event', async () => {
    const server = createServer(hello());
    server.on('upgrade', (req, socket) => socket.end(`HTTP/1.1 101 Switching\r\n\r\n${req.url}`));
    await serving(server, async (port) => {
      const socket = connectTcp(port, '127.0.0.1').setEncoding('latin1');
      socket.write('GET /live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
      expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1.1 101.*\/live$/s);
    });
  });

  describe('Expect: 100-continue', () => {
    const app = () => {
      const made = express();
      made.post('/refused', (_req, res) => {
        res.sendStatus(403);
      });
      made.post('/read', express.text(), (req, res) => {
        res.send(req.body);
      });
      return made;
    };

    /** Sends a request head, and the body after 100 Continue. Returns what the server sent before and after. */
    async function expecting(port: number, path: string): Promise<string> {
      const socket = connectTcp(port, '127.0.0.1').setEncoding('latin1');
      const lines = [
        'Host: a',
        'Connection: close',
        'Content-Type: text/plain',
        'Content-Length: 5',
        'Expect: 100-continue',
      ];
      socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
      let seen = '';
      socket.on('data', (part: string) => {
        seen += part;
        if (seen === 'HTTP/1.1 100 Continue\r\n\r\n') socket.write('words');
      });
      await once(socket, 'close');
      return seen;
    }

    it('createServer lets the app refuse a request before the client sends the body', async () => {
      await serving(createServer(app()), async (port) => {
        expect(await expecting(port, '/refused')).toMatch(/^HTTP\/1.1 403 /);
      });
    });

    it('createServer sends 100 Continue when the app reads the body', async () => {
      await serving(createServer(app()), async (port) => {
        expect(await expecting(port, '/read')).toMatch(
          /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 .*words$/s,
        );
      });
    });

    it('createServer leaves Expect: 100-continue to a checkContinue listener', async () => {
      const server = createServer(app());
      server.on('checkContinue', (_req, res) => res.writeHead(418).end());
      await serving(server, async (port) => {
        expect(await expecting(port, '/refused')).toMatch(/^HTTP\/1.1 418 /);
      });
    });

    it('createServer supports Expect: 100-continue over HTTP/2', async () => {
      await serving(createServer(app(), { http2: true }), async (port) => {
        const headers = { expect: '100-continue', 'content-type': 'text/plain' };
        expect(
          await requestHttp2(port, { method: 'POST', path: '/read', headers, body: 'words' }),
        ).toMatchObject({
          status: 200,
          body: 'words',
        });
      });
    });
  });
});
