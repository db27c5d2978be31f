/** @tags node graphql */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { graphqlHTTP, Upload } from 'espalier';
import { inject, type TypedDocument } from 'espalier/testing';
import express from 'express';
import session from 'express-session';
import { buildSchema, GraphQLList, GraphQLObjectType, GraphQLSchema, GraphQLString, parse } from 'graphql';
import { makeFolder } from '../kit.ts';
import { until } from '../until.ts';

const uploads = new GraphQLSchema({
  query: new GraphQLObjectType({ name: 'Query', fields: { ok: { type: GraphQLString } } }),
  mutation: new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      read: {
        type: new GraphQLList(GraphQLString),
        args: { files: { type: new GraphQLList(Upload) } },
        resolve: (_root, { files }: { files: Upload[] }) =>
          Promise.all(files.map(async (file) => `${file.filename} ${file.mimetype} ${await file.text()}`)),
      },
    },
  }),
});

describe('inject of an operation', () => {
  const schema = buildSchema('type Query { hello(name: String!): String, user: String }');
  const rootValue = {
    hello: ({ name }: { name: string }) => `Hello ${name}`,
    user: (_args: object, { user }: { user?: string }) => user,
  };
  const handler = graphqlHTTP(schema, { rootValue, context: ({ headers }) => ({ user: headers['x-user'] }) });
  const query = 'query Greet($name: String!) { hello(name: $name) user } query Other { user }';

  it.each(['GET', 'POST'] as const)(
    'inject sends query, variables, name and headers over %s',
    async (method) => {
      const response = await inject(handler, {
        method,
        query,
        variables: { name: 'world' },
        operationName: 'Greet',
        headers: { 'X-User': 'ada' },
      });
      expect(response.status).toBe(200);
      expect(response.data).toEqual({ hello: 'Hello world', user: 'ada' });
      expect(response.errors).toBeUndefined();
      expect(response.json()).toEqual({ data: response.data });
    },
  );

  it('inject types the result by the type of a parsed document', async () => {
    const document: TypedDocument<{ hello: string }, { name: string }> = parse(
      'query ($name: String!) { hello(name: $name) }',
    );
    const { data } = await inject(handler, { query: document, variables: { name: 'you' } });
    expect(data?.hello.toUpperCase()).toBe('HELLO YOU');
    // @ts-expect-error the variable is a string
    const { errors } = await inject(handler, { query: document, variables: { name: 1 } });
    expect(errors?.[0]?.extensions?.['code']).toBe('BAD_USER_INPUT');
  });

  it('inject returns the errors of a refused document', async () => {
    const headers = { accept: 'application/graphql-response+json' };
    const { status, data, errors } = await inject(handler, { query: '{ nothing }', headers });
    expect([status, data, errors?.[0]?.extensions?.['code']]).toEqual([
      400,
      undefined,
      'GRAPHQL_VALIDATION_FAILED',
    ]);
  });

  it('inject sends the operation to another path of an app', async () => {
    const app = express().use('/api', handler);
    const { data } = await inject(app, { query: '{ user }', path: '/api?tenant=1', method: 'GET' });
    expect(data).toEqual({ user: null });
    const missing = await inject(app, { query: '{ user }' });
    expect([missing.status, missing.data]).toEqual([404, undefined]);
    expect(() => missing.json()).toThrow(/^The body of the response is not JSON \(status 404, text\/html/);
  });
});

describe('inject of files', () => {
  const tempDir = makeFolder();
  const handler = graphqlHTTP(uploads, { uploads: { tempDir, memoryBytes: 0 } });
  const query = 'mutation ($files: [Upload]) { read(files: $files) }';
  const file = (name: string, text: string): File => new File([text], name, { type: 'text/plain' });

  it('inject uploads the files among the variables, also one that occurs twice', async () => {
    const twice = file('b "quoted" ü.txt', 'second');
    const files = [file('a.txt', 'first'), twice, twice, new Blob(['third'])];
    const { data } = await inject(handler, { query, variables: { files } });
    expect(data).toEqual({
      read: [
        'a.txt text/plain first',
        'b "quoted" ü.txt text/plain second',
        'b "quoted" ü.txt text/plain second',
        'blob application/octet-stream third',
      ],
    });
    expect(readdirSync(tempDir)).toEqual([]);
  });

  it('inject uploads to an Express app and to a server', async () => {
    const app = express().use('/graphql', handler);
    const { data } = await inject(app, { query, variables: { files: [file('a.txt', 'x'.repeat(500_000))] } });
    expect(data).toEqual({ read: [`a.txt text/plain ${'x'.repeat(500_000)}`] });
  });

  it('inject returns the refusal of a file that is too large', async () => {
    const small = graphqlHTTP(uploads, { uploads: { maxFileBytes: 10 } });
    const { status, errors } = await inject(small, {
      query,
      variables: { files: [file('a', 'x'.repeat(99))] },
    });
    expect([status, errors?.[0]?.extensions?.['code']]).toEqual([413, 'FILE_TOO_LARGE']);
  });
});

describe('inject of other requests', () => {
  const echo = (req: IncomingMessage, res: ServerResponse): void => {
    res.setHeader('x-type', req.headers['content-type'] ?? 'none');
    res.setHeader('x-length', req.headers['content-length'] ?? 'none');
    res.setHeader('x-method', String(req.method));
    req.pipe(res);
  };
  async function* chunks() {
    yield 'one';
    yield Buffer.from('two');
  }

  it.each([
    ['a string', 'text', 'text/plain;charset=UTF-8', '4', 'text'],
    ['bytes', Buffer.from('bytes'), 'none', '5', 'bytes'],
    ['an object', { a: 1 }, 'application/json', '7', '{"a":1}'],
    ['a list', [1], 'application/json', '3', '[1]'],
    [
      'a form',
      new URLSearchParams({ a: 'b c' }),
      'application/x-www-form-urlencoded;charset=UTF-8',
      '5',
      'a=b+c',
    ],
    ['a Blob', new Blob(['x'], { type: 'text/css' }), 'text/css', '1', 'x'],
    ['an iterable', chunks(), 'none', 'none', 'onetwo'],
  ])('inject sends %s as body with its type', async (_name, body, type, length, text) => {
    const response = await inject(echo, { body });
    const { 'x-type': sentType, 'x-length': sentLength, 'x-method': method } = response.headers;
    expect([sentType, sentLength, method, response.text]).toEqual([type, length, 'POST', text]);
  });

  it('inject sends FormData as a multipart body', async () => {
    const body = new FormData();
    body.append('name', new File(['text'], 'a.txt'));
    const { text, headers } = await inject(echo, { body });
    expect(headers['x-type']).toMatch(/^multipart\/form-data; boundary=/);
    expect(text).toContain('filename="a.txt"');
  });

  it('inject sends GET without a body, and GET to / by default', async () => {
    expect((await inject(echo, { path: '/a' })).headers['x-method']).toBe('GET');
    expect((await inject((req, res) => res.end(req.url))).text).toBe('/');
  });

  it('inject waits for 100 Continue before it sends the body', async () => {
    let isContinued = false;
    const server = (await import('node:http')).createServer();
    server.on('checkContinue', (req, res) => {
      isContinued = true;
      res.writeContinue();
      req.pipe(res);
    });
    const response = await inject(server, { body: 'text', headers: { expect: '100-continue' } });
    expect([isContinued, response.text]).toEqual([true, 'text']);
  });

  it('inject keeps a session with the cookies of earlier responses', async () => {
    const app = express().use(session({ secret: 's', resave: false, saveUninitialized: false }));
    app.post('/sign-in', (req, res) => {
      Object.assign(req.session, { user: 'ada' });
      res.end();
    });
    app.post('/sign-out', (req, res) => req.session.destroy(() => res.clearCookie('connect.sid').end()));
    app.get('/', (req, res) => void res.json(Object(req.session).user ?? null));
    const { cookies } = await inject(app, { path: '/sign-in', method: 'POST' });
    expect(Object.keys(cookies)).toEqual(['connect.sid']);
    expect((await inject(app, { cookies })).json()).toBe('ada');
    expect((await inject(app)).json()).toBeNull();
    expect((await inject(app, { path: '/sign-out', method: 'POST', cookies })).cookies).toEqual({});
  });

  it('inject sets the address of the client', async () => {
    const app = express().get('/', (req, res) => void res.json([req.ip, req.socket.remoteFamily]));
    app.set('trust proxy', 'loopback');
    expect((await inject(app, { remoteAddress: '2001:db8::1' })).json()).toEqual(['2001:db8::1', 'IPv6']);
    const headers = { 'x-forwarded-for': '203.0.113.7' };
    expect((await inject(app, { headers })).json()).toEqual(['203.0.113.7', 'IPv4']);
  });

  it('inject runs many requests to one app at the same time', async () => {
    const app = express().get('/:id', (req, res) => {
      setTimeout(() => res.json(req.params['id']), Number(req.params['id']) % 3);
    });
    const ids = Array.from({ length: 200 }, (_, id) => String(id));
    const responses = await Promise.all(ids.map((id) => inject(app, { path: `/${id}` })));
    expect(responses.map((response) => response.json())).toEqual(ids);
  });
});

describe('a request that ends early', () => {
  it('inject disconnects when its signal is aborted, and rejects with the reason', async () => {
    const controller = new AbortController();
    let events: string[] = [];
    const handler = graphqlHTTP(buildSchema('type Query { slow: String }'), {
      rootValue: {
        slow: async (_args: object, { res }: { res: ServerResponse }) => {
          events.push('started');
          controller.abort(new Error('enough'));
          await once(res, 'close');
          events.push('closed');
        },
      },
      context: (_req: IncomingMessage & { res: ServerResponse }) => ({ res: _req.res }),
    });
    const app = express().use('/graphql', handler);
    await expect(inject(app, { query: '{ slow }', signal: controller.signal })).rejects.toThrow('enough');
    await until(() => events.length === 2);
    expect(events).toEqual(['started', 'closed']);
    events = [];
    await expect(inject(app, { query: '{ slow }', signal: controller.signal })).rejects.toThrow('enough');
    expect(events).toEqual([]);
  });

  it('inject disconnects during an upload, and the handler releases its files', async () => {
    const tempDir = makeFolder();
    const handler = graphqlHTTP(uploads, { uploads: { tempDir } });
    const controller = new AbortController();
    async function* body() {
      yield '--x\r\nContent-Disposition: form-data; name="operations"\r\n\r\n{"query":"{ok}"}\r\n';
      controller.abort();
      await new Promise(() => undefined);
    }
    const headers = { 'content-type': 'multipart/form-data; boundary=x' };
    const request = { method: 'POST', path: '/graphql', headers, body: body(), signal: controller.signal };
    await expect(inject(handler, request)).rejects.toMatchObject({ name: 'AbortError' });
    expect(readdirSync(tempDir)).toEqual([]);
  });

  it('inject rejects if the server closes the connection before the end of the response', async () => {
    const handler = (_req: IncomingMessage, res: ServerResponse): void => {
      res.writeHead(200, { 'content-length': '10' });
      res.write('half');
      setImmediate(() => res.destroy());
    };
    await expect(inject(handler)).rejects.toMatchObject({ code: 'ECONNRESET' });
  });

  it('inject rejects if the response is 101 Switching Protocols, after which no other response follows', async () => {
    const handler = (_req: IncomingMessage, res: ServerResponse): void => {
      res.writeHead(101, { connection: 'upgrade', upgrade: 'other' }).end();
    };
    await expect(inject(handler)).rejects.toThrow('The server closed the connection without a response');
  });

  it('inject rejects with an exception of the handler, and with the rejection of its promise', async () => {
    const bug = new TypeError('a bug');
    await expect(
      inject(() => {
        throw bug;
      }),
    ).rejects.toBe(bug);
    await expect(inject(() => Promise.reject(bug))).rejects.toBe(bug);
    await expect(
      inject(async (_req, res) => {
        res.write('half');
        throw bug;
      }),
    ).rejects.toBe(bug);
  });

  it('inject rejects with an unexpected error that the handler passes to next', async () => {
    const bug = new Error('a bug');
    await expect(inject((_req, _res, next) => next(bug))).rejects.toBe(bug);
    const refused = await inject((_req, _res, next) => next(Object.assign(new Error('no'), { status: 403 })));
    expect([refused.status, refused.text]).toEqual([403, 'Forbidden']);
    const passed = await inject((_req, _res, next) => next());
    expect([passed.status, passed.text]).toEqual([404, 'Not Found']);
  });

  it.each([null, false, '', 'route', 'router'])(
    'next(%p) is not an error for inject, as for Express',
    async (value) => {
      expect((await inject((_req, _res, next) => next(value))).status).toBe(404);
    },
  );

  it('inject returns the response of a middleware that calls next() after it', async () => {
    const respond = (_req: IncomingMessage, res: ServerResponse, next: () => void): void => {
      res.end('done');
      next();
    };
    expect((await inject(respond)).text).toBe('done');
    expect((await inject(express().use(respond))).text).toBe('done');
  });

  it('a handler that reads the body of a client that has disconnected leaves no unhandled rejection', async () => {
    const unhandled = jest.fn();
    process.on('unhandledRejection', unhandled);
    const failed = jest.fn();
    async function* body() {
      yield 'start';
      throw new Error('enough');
    }
    const read = async (req: IncomingMessage): Promise<void> => {
      await req.toArray().catch((error) => {
        failed();
        throw error;
      });
    };
    await expect(inject(read, { body: body() })).rejects.toThrow('enough');
    await until(() => failed.mock.calls.length > 0);
    await new Promise(setImmediate);
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });
});

describe('inject of a body', () => {
  const echo = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    res.end(Buffer.concat(await req.toArray()));
  };

  it.each(['GET', 'DELETE', 'OPTIONS', 'POST', 'QUERY'])(
    'inject sends the body of a %s request',
    async (method) => {
      async function* chunks() {
        yield '{"a"';
        yield ':1}';
      }
      for (const body of [{ a: 1 }, '{"a":1}', chunks()]) {
        expect((await inject(echo, { method, body })).text).toBe('{"a":1}');
      }
    },
  );

  it('inject sends the bytes of buffers and of views of any type', async () => {
    const bytes = Uint8Array.from([0, 1, 2, 3, 254, 255]);
    const views = [
      bytes.buffer,
      new Uint16Array(bytes.buffer),
      new DataView(bytes.buffer),
      Buffer.from(bytes),
    ];
    for (const body of views) expect((await inject(echo, { body })).body).toEqual(Buffer.from(bytes));
    expect((await inject(echo, { body: bytes.subarray(2, 4) })).body).toEqual(Buffer.from([2, 3]));
  });
});
