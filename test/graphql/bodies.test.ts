/** @tags node graphql */
import { once } from 'node:events';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import express from 'express';
import express4 from 'express4';
import { buildSchema } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import { post, type Running, run, wire } from './server.ts';

const schema = buildSchema('type Query { hello(name: String): String } type Mutation { add: Int }');
let runs = 0;
const rootValue = {
  hello: ({ name }: { name?: string }) => {
    runs += 1;
    return `Hello ${name ?? 'world'}`;
  },
};
const handler = (options: GraphQLOptions = {}) => graphqlHTTP(schema, { rootValue, ...options });
const HELLO = '{"query":"{ hello }"}';
const DATA = { data: { hello: 'Hello world' } };

let open: Running[] = [];
const serve = async (...args: Parameters<typeof run>): Promise<Running> => {
  const running = await run(...args);
  open.push(running);
  return running;
};
afterEach(async () => {
  await Promise.all(open.map((running) => running.close()));
  open = [];
});

describe('the type of a body', () => {
  const app = express().use('/graphql', handler());

  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'APPLICATION/JSON;CHARSET="UTF8"',
    'application/json;foo=bar',
    'application/graphql-response+json',
  ])('graphqlHTTP accepts the Content-Type %s', async (type) => {
    await request(app).post('/graphql').set('content-type', type).send(HELLO).expect(200, DATA);
  });

  it.each([
    'text/plain',
    'text/plain; application/json',
    'text/plain, application/json',
    'application/x-www-form-urlencoded',
    'application/graphql',
    'application/jsonp',
    'application/json/x',
    'application/json; charset=utf-16',
    'application/json; charset=utf-7',
    'application/json; charset=utf-53',
    'application/json; charset=latin1',
    'application/json; charset=utf-8; charset=latin1',
  ])('graphqlHTTP sends 415 for the Content-Type %s and executes nothing', async (type) => {
    const before = runs;
    const { body } = await request(app)
      .post('/graphql?query={hello}')
      .set('content-type', type)
      .send(HELLO)
      .expect(415);
    expect(body.errors[0].extensions.code).toBe('UNSUPPORTED_MEDIA_TYPE');
    expect(runs).toBe(before);
  });

  it('graphqlHTTP sends 415 for a missing and for a repeated Content-Type', async () => {
    const { port } = await serve(handler());
    const client = wire(port);
    client.write(`POST /graphql HTTP/1.1\r\nhost: a\r\ncontent-length: ${HELLO.length}\r\n\r\n${HELLO}`);
    await client.until(/HTTP\/1.1 415[\s\S]*no Content-Type/);
    const twice = 'content-type: application/json\r\ncontent-type: text/plain\r\n';
    client.write(
      `POST /graphql HTTP/1.1\r\nhost: a\r\n${twice}content-length: ${HELLO.length}\r\n\r\n${HELLO}`,
    );
    await client.until(/415[\s\S]*HTTP\/1.1 415/);
    client.socket.destroy();
  });
});

describe('an earlier body parser', () => {
  const parsers: [string, express.RequestHandler[], string][] = [
    ['express.json()', [express.json()], HELLO],
    ['express.text()', [express.text({ type: '*/*' })], HELLO],
    ['express.raw()', [express.raw({ type: '*/*' })], HELLO],
    ['express.urlencoded()', [express.urlencoded()], HELLO],
    ['one after another', [express.json(), express.urlencoded(), express.text()], HELLO],
    [
      'one for another type, which leaves {}',
      [
        (req, _res, next) => {
          req.body = {};
          next();
        },
      ],
      HELLO,
    ],
  ];

  it.each(parsers)('graphqlHTTP accepts the body of an earlier parser: %s', async (_name, handlers, text) => {
    for (const make of [express, express4 as unknown as typeof express]) {
      const app = make().use(handlers).use('/graphql', handler());
      await request(app)
        .post('/graphql')
        .set('content-type', 'application/json')
        .send(text)
        .expect(200, DATA);
    }
  });

  it.each(['text/plain', 'application/octet-stream', 'application/x-www-form-urlencoded'])(
    'graphqlHTTP sends 415 for %s, also if an earlier parser accepted it',
    async (type) => {
      for (const make of [express, express4 as unknown as typeof express]) {
        // The last parser of Express 4 sets an empty object for types that it does not parse.
        for (const parsers of [[make.json(), make.text(), make.raw(), make.urlencoded()], [make.json()]]) {
          const app = make().use(parsers).use('/graphql', handler());
          await request(app).post('/graphql').set('content-type', type).send('query={hello}').expect(415);
        }
      }
    },
  );

  it('graphqlHTTP sends 400 if earlier middleware consumed the body without storing it', async () => {
    const { port } = await serve((req, res) => {
      req.resume().once('end', () => handler()(req, res));
    });
    const client = wire(port);
    client.write(post(HELLO));
    await client.until(/HTTP\/1.1 400[\s\S]*BODY_CONSUMED/);
    client.socket.destroy();
  });

  it('graphqlHTTP sends 400 for invalid JSON that an earlier parser left as text', async () => {
    const app = express()
      .use(express.text({ type: '*/*' }))
      .use('/graphql', handler());
    await request(app).post('/graphql').set('content-type', 'application/json').send('{"query":').expect(400);
  });

  it('graphqlHTTP sends 413 for a parsed body above the limit', async () => {
    const app = express()
      .use(express.text({ type: '*/*' }))
      .use('/graphql', handler({ limits: { bodyBytes: 10 } }));
    await request(app).post('/graphql').set('content-type', 'application/json').send(HELLO).expect(413);
  });
});

describe('the text of a body', () => {
  it.each([
    ['with a byte order mark', Buffer.from(`\uFEFF${HELLO}`), 200, 'data'],
    ['split within a character', Buffer.from('{"query":"{ hello(name: \\"🐙\\") }"}'), 200, 'data'],
    ['broken UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0xc0, 0x7d]), 400, 'errors'],
    ['UTF-16', Buffer.from(HELLO, 'utf16le'), 400, 'errors'],
    ['a NUL in the document', Buffer.from('{"query":"{ hello\\u0000 }"}'), 200, 'errors'],
    ['a lone surrogate in the document', Buffer.from('{"query":"{ hel\\ud800lo }"}'), 200, 'errors'],
  ])('graphqlHTTP accepts only UTF-8 as the text of a body: %s', async (_title, bytes, status, member) => {
    const { port } = await serve(handler());
    const client = wire(port);
    const message = post(bytes, { accept: 'application/json' });
    // Byte by byte, so that every character is split somewhere.
    for (let at = message.length - bytes.length - 1, from = 0; from < message.length; at += 1) {
      client.write(message.subarray(from, at));
      from = at;
    }
    const text = await client.until(/\r\n\r\n[\s\S]+\}/);
    expect(text).toMatch(new RegExp(`HTTP/1.1 ${status}`));
    expect(text).toContain(`"${member}"`);
    client.socket.destroy();
  });
});

describe('the size of a body', () => {
  const limits = { bodyBytes: 1000 };

  it('graphqlHTTP counts the bytes of a body exactly', async () => {
    const app = express().use('/graphql', handler({ limits }));
    const send = (length: number) =>
      request(app).post('/graphql').set('content-type', 'application/json').send(HELLO.padEnd(length, ' '));
    await send(1000).expect(200);
    const { body } = await send(1001).expect(413);
    expect(body.errors[0]).toEqual({
      message: 'The request body is larger than 1000 bytes; send less (option "limits.bodyBytes")',
      extensions: { code: 'BODY_TOO_LARGE' },
    });
  });

  it('graphqlHTTP refuses a Content-Length above the limit before it reads the body', async () => {
    const { port } = await serve(handler({ limits }));
    const client = wire(port);
    client.write(
      'POST /graphql HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 9999999\r\n\r\n',
    );
    await client.until(/HTTP\/1.1 413[\s\S]*BODY_TOO_LARGE/);
    client.socket.destroy();
  });

  it('graphqlHTTP counts the bytes of a chunked body', async () => {
    const { port } = await serve(handler({ limits }));
    const client = wire(port);
    client.write(
      'POST /graphql HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n',
    );
    for (let chunk = 0; chunk < 11; chunk += 1) client.write(`64\r\n${'x'.repeat(100)}\r\n`);
    await client.until(/HTTP\/1.1 413/);
    client.socket.destroy();
  });

  it('graphqlHTTP keeps the connection if the rest of a refused body arrives soon', async () => {
    const { port } = await serve(handler({ limits }));
    const client = wire(port);
    client.write(post('x'.repeat(5000)));
    await client.until(/HTTP\/1.1 413/);
    client.write(post(HELLO));
    await client.until(/HTTP\/1.1 200[\s\S]*Hello world/);
    client.socket.destroy();
  });
});

describe('a compressed body', () => {
  const codings: [string, Buffer][] = [
    ['gzip', gzipSync(HELLO)],
    ['deflate', deflateSync(HELLO)],
    ['br', brotliCompressSync(HELLO)],
  ];
  const send = async (encoding: string, bytes: Buffer): Promise<Response> => {
    const { url } = await serve(handler());
    const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
    return fetch(url, { method: 'POST', headers, body: new Uint8Array(bytes) });
  };

  it.each(codings)('graphqlHTTP accepts a %s body', async (encoding, bytes) => {
    expect(await (await send(encoding, bytes)).json()).toEqual(DATA);
  });

  it.each(['zstd-x', 'constructor', 'gzip, gzip'])(
    'graphqlHTTP sends 415 with the supported codings for Content-Encoding %s',
    async (encoding) => {
      const { status, headers } = await send(encoding, Buffer.from('x'));
      expect([status, headers.get('accept-encoding')]).toEqual([415, 'gzip, deflate, br, identity']);
    },
  );

  it('graphqlHTTP accepts Content-Encoding: identity', async () => {
    expect((await send('identity', Buffer.from(HELLO))).status).toBe(200);
  });

  it('graphqlHTTP counts the bytes of a compressed body after decompression', async () => {
    const compressedZeros = gzipSync(Buffer.alloc(40 * 1024 * 1024, ' '));
    expect(compressedZeros.length).toBeLessThan(64 * 1024);
    expect((await send('gzip', compressedZeros)).status).toBe(413);
  });

  it.each([
    ['broken', Buffer.from('invalid')],
    ['cut off', gzipSync(HELLO).subarray(0, 20)],
  ])('graphqlHTTP sends 400 for a compressed body that is %s', async (_how, bytes) => {
    expect((await send('gzip', bytes)).status).toBe(400);
  });
});

describe('a body that does not arrive', () => {
  it('graphqlHTTP sends 408 for a body that does not arrive and closes the connection', async () => {
    const { port } = await serve(handler({ limits: { bodyTimeout: 40 } }));
    const client = wire(port);
    client.write(post(HELLO).subarray(0, -5));
    expect(await client.closed()).toMatch(/^HTTP\/1.1 408[\s\S]*BODY_TIMEOUT/);
  });

  it('graphqlHTTP ignores a body that does not arrive because the client disconnected', async () => {
    const errors: unknown[] = [];
    const { port, server } = await serve((req, res) => handler()(req, res, (error) => errors.push(error)));
    const client = wire(port);
    const arrived = once(server, 'request');
    client.write(post(HELLO).subarray(0, -5));
    const [req] = await arrived;
    client.socket.resetAndDestroy();
    await new Promise((resolve) => req.once('close', resolve));
    expect(errors).toEqual([]);
    const next = wire(port);
    next.write(post(HELLO));
    await next.until(/Hello world/);
    next.socket.destroy();
  });
});

it('graphqlHTTP keeps the connection usable after every refused request', async () => {
  const { port } = await serve(handler());
  const client = wire(port);
  const bad = [
    post('{'),
    post(HELLO, { 'content-type': 'text/plain' }),
    post(HELLO, { accept: 'text/html' }),
    post(HELLO, { 'content-encoding': 'gzip' }),
    post('{"query":"{"}'),
    Buffer.from('PUT /graphql HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc'),
    Buffer.from('GET /graphql?query=%E0%A4%A HTTP/1.1\r\nhost: a\r\n\r\n'),
  ];
  for (const message of bad) {
    client.write(message);
    await client.until(/"errors"[\s\S]*\}\]\}$/);
    client.forget();
  }
  client.write(post(HELLO));
  await client.until(/HTTP\/1.1 200[\s\S]*Hello world/);
  client.socket.destroy();
});
