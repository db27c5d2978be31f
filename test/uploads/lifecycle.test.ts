/** @tags node-lines graphql slow */
import { AsyncLocalStorage } from 'node:async_hooks';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import * as http from 'node:http';
import * as net from 'node:net';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import debug from 'debug';
import { createServer, graphqlHTTP, Upload, type UploadOptions } from 'espalier';
import express from 'express';
import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { descriptorsIn } from '../descriptors.ts';
import { atEnd, makeFolder } from '../kit.ts';
import { needs } from '../programs.ts';
import { until } from '../until.ts';
import { BOUNDARY, encode, file, map, operations, type Part, post } from './form.ts';
import { createSchema, ONE, type Seen } from './schema.ts';
import { startServer } from './server.ts';

const run = promisify(execFile);
const one = { query: ONE, variables: { file: null } };
const head: [Part, Part] = [operations(one), map({ 0: ['variables.file'] })];
const unread = [operations({ ...one, query: 'mutation ($file: Upload) { unread(file: $file) }' }), head[1]];
const CLOSING = `\r\n--${BOUNDARY}--\r\n`;
const contentType = `multipart/form-data; boundary=${BOUNDARY}`;

let folder: string;
beforeEach(() => {
  folder = makeFolder();
  atEnd(() => expect(readdirSync(folder)).toEqual([]));
});

const unlinkedFiles = (): number => descriptorsIn(folder);

/** A request that has sent everything up to the middle of its file. */
async function begin(
  port: number,
  size: number,
  parts: Part[] = head,
  path = '/',
): Promise<http.ClientRequest> {
  const headers = { 'content-type': contentType };
  const req = http.request({ port, path, method: 'POST', headers, agent: false });
  req.on('error', () => {});
  const start = encode([...parts, file('0', Buffer.alloc(size, 'x'))], '').subarray(0, -2);
  await new Promise<void>((resolve) => req.write(start, () => resolve()));
  return req;
}

async function responseOf(
  req: http.ClientRequest,
): Promise<{ status: number; json: { data: never; errors: never } }> {
  const [res] = (await once(req, 'response')) as [http.IncomingMessage];
  return {
    status: res.statusCode as number,
    json: JSON.parse((await res.setEncoding('utf8').toArray()).join('')),
  };
}

describe('temporary files', () => {
  it('uploads use an unlinked temporary file and close its descriptor after the response', async () => {
    await using server = await startServer(graphqlHTTP(createSchema([]), { uploads: { tempDir: folder } }));
    const req = await begin(server.port, 1 << 20);
    await until(() => unlinkedFiles() === 1);
    expect(readdirSync(folder)).toEqual([]);
    req.end(CLOSING);
    expect((await responseOf(req)).json).toMatchObject({ data: { one: { size: 1 << 20 } } });
    await until(() => unlinkedFiles() === 0);
  });

  it('uploads close the temporary file when the client aborts', async () => {
    const seen: Seen = [];
    await using server = await startServer(graphqlHTTP(createSchema(seen), { uploads: { tempDir: folder } }));
    const requests = await Promise.all(
      Array.from({ length: 20 }, (_, i) => begin(server.port, 200_000 + i * 60_000)),
    );
    await until(() => unlinkedFiles() > 10);
    for (const req of requests) req.destroy();
    await until(() => unlinkedFiles() === 0);
    expect(seen).toEqual([]);
    expect((await post(server.url, [...head, file('0')])).status).toBe(200);
  });

  it('saveTo closes and deletes its file when the client aborts', async () => {
    const target = makeFolder();
    const saves: Promise<number>[] = [];
    const text = { type: GraphQLString };
    const save = {
      type: GraphQLString,
      args: { file: { type: Upload } },
      resolve(_: unknown, { file }: { file: Upload }) {
        for (let i = 0; i < 10; i++) saves.push(file.saveTo(join(target, `${i}`)));
        return new Promise(() => undefined);
      },
    };
    const schema = new GraphQLSchema({
      query: new GraphQLObjectType({ name: 'Query', fields: { text } }),
      mutation: new GraphQLObjectType({ name: 'Mutation', fields: { save } }),
    });
    await using server = await startServer(
      graphqlHTTP(schema, { uploads: { tempDir: folder }, timeout: false }),
    );
    const query = 'mutation ($file: Upload) { save(file: $file) }';
    const req = await begin(server.port, 8 << 20, [
      operations({ query, variables: { file: null } }),
      map({ 0: ['variables.file'] }),
    ]);
    req.end(CLOSING);
    await until(() => saves.length > 0);
    req.destroy();
    const results = await Promise.allSettled(saves);
    // On Node 26 a handle that is left to the garbage collector ends the process.
    await until(() => descriptorsIn(target) === 0);
    const rejected = results.filter(({ status }) => status === 'rejected');
    expect(readdirSync(target)).toHaveLength(results.length - rejected.length);
  });

  it.each([
    ['in memory', 100],
    ['on disk', 3 << 20],
  ])(
    'saveTo writes a file %s whose promise the resolver drops, or reports its failure once',
    async (_, size) => {
      const target = makeFolder();
      const reports: string[] = [];
      const resolve =
        (use: (save: (name: string) => Promise<number>) => unknown) =>
        async (_: unknown, { file }: { file: Upload }) => {
          await use((name) => file.saveTo(join(target, name)));
          return 'ok';
        };
      const field = (use: Parameters<typeof resolve>[0]) => ({
        type: GraphQLString,
        args: { file: { type: Upload } },
        resolve: resolve(use),
      });
      const schema = new GraphQLSchema({
        query: new GraphQLObjectType({ name: 'Query', fields: { text: { type: GraphQLString } } }),
        mutation: new GraphQLObjectType({
          name: 'Mutation',
          fields: {
            drop: field((save) => void save('written')),
            fail: field((save) => void save('no/where')),
            handle: field((save) => void save('no/where').catch(() => undefined)),
            handleLater: field(async (save) => {
              const saving = save('no/where');
              await new Promise((resolve) => setTimeout(resolve, 1));
              await saving.catch(() => undefined);
            }),
          },
        }),
      });
      const onError = (error: unknown) => void reports.push((error as Error).message);
      await using server = await startServer(graphqlHTTP(schema, { uploads: { tempDir: folder }, onError }));
      for (const name of ['drop', 'fail', 'handle', 'handleLater']) {
        const query = `mutation ($file: Upload) { ${name}(file: $file) }`;
        const parts = [operations({ query, variables: { file: null } }), map({ 0: ['variables.file'] })];
        const { json } = await post(server.url, [...parts, file('0', Buffer.alloc(size, 'x'))]);
        expect(json).toEqual({ data: { [name]: 'ok' } });
      }
      const written = join(target, 'written');
      await until(() => statSync(written, { throwIfNoEntry: false })?.size === size && reports.length > 0);
      await until(() => unlinkedFiles() === 0);
      expect(reports).toEqual([
        expect.stringMatching(/^saveTo of "\S+" \(part "0"\) failed: ENOENT: no such file or directory/),
      ]);
    },
  );

  it('createReadStream reports a pipe that the resolver does not wait for, once, when the response cuts it off', async () => {
    const target = makeFolder();
    const reports: string[] = [];
    const field = (use: (stream: NodeJS.ReadableStream, copy: Writable) => unknown) => ({
      type: GraphQLString,
      args: { file: { type: Upload } },
      resolve: async (_: unknown, { file }: { file: Upload }) => {
        await use(file.createReadStream(), createWriteStream(join(target, 'copy')));
        return 'ok';
      },
    });
    const schema = new GraphQLSchema({
      query: new GraphQLObjectType({ name: 'Query', fields: { text: { type: GraphQLString } } }),
      mutation: new GraphQLObjectType({
        name: 'Mutation',
        fields: {
          abandon: field((_stream, copy) => void copy.destroy()),
          listen: field((stream, copy) => void stream.once('error', () => copy.end()).pipe(copy)),
          wait: field((stream, copy) => pipeline(stream, copy)),
          drop: field((stream, copy) => void stream.once('close', () => copy.end()).pipe(copy)),
        },
      }),
    });
    const onError = (error: unknown) => void reports.push((error as Error).message);
    await using server = await startServer(graphqlHTTP(schema, { uploads: { tempDir: folder }, onError }));
    for (const name of ['abandon', 'listen', 'wait', 'drop']) {
      const query = `mutation ($file: Upload) { ${name}(file: $file) }`;
      const parts = [operations({ query, variables: { file: null } }), map({ 0: ['variables.file'] })];
      const { json } = await post(server.url, [...parts, file('0', Buffer.alloc(8 << 20, 'x'))]);
      expect(json).toEqual({ data: { [name]: 'ok' } });
    }
    await until(() => reports.length > 0 && unlinkedFiles() === 0);
    expect(reports).toEqual([
      expect.stringMatching(
        /^createReadStream of "\S+" \(part "0"\) failed: The upload can only be read until/,
      ),
    ]);
  });

  it('uploads store nothing of a pipelined request before the earlier response was sent', async () => {
    const seen: Seen = [];
    const held: http.ServerResponse[] = [];
    const app = express();
    app.get('/slow', (_req, res) => void held.push(res));
    const uploads = { tempDir: folder };
    app.use(graphqlHTTP(createSchema(seen), { uploads }));
    await using server = await startServer(app);
    const pipeline = async (size: number): Promise<net.Socket> => {
      const body = encode([...unread, file('0', Buffer.alloc(size, 'x'))]);
      const socket = net.connect(server.port, '127.0.0.1');
      const before = held.length;
      socket.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
      socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Type: ${contentType}\r\n`);
      socket.write(`Content-Length: ${body.length}\r\n\r\n`);
      socket.write(body);
      await until(() => held.length > before);
      return socket;
    };
    const sockets = [await pipeline(400_000), await pipeline(300_000), await pipeline(300_000)];
    expect((await post(server.url, [...head, file('0', Buffer.alloc(150_000))])).status).toBe(200);
    expect(unlinkedFiles()).toBe(0);
    expect(seen).toHaveLength(1);
    // The client of the first request disconnects, the others get the earlier response.
    sockets[0]?.destroy();
    for (const res of held.slice(1)) res.end();
    await until(() => seen.length === 3);
    for (const socket of sockets) socket.destroy();
    await until(() => unlinkedFiles() === 0);
    expect(seen).toHaveLength(3);
  });

  it('uploads close the temporary file when a limit is exceeded or the body is malformed', async () => {
    const uploads = { tempDir: folder, maxFileBytes: 600_000 };
    await using server = await startServer(graphqlHTTP(createSchema([]), { uploads }));
    expect((await post(server.url, [...head, file('0', Buffer.alloc(600_001))])).status).toBe(413);
    expect(
      (await post(server.url, encode([...head, file('0', Buffer.alloc(500_000))]).subarray(0, -20))).status,
    ).toBe(400);
    await until(() => unlinkedFiles() === 0);
  });

  it('uploads respond with 500 and hide the path when the temporary file cannot be created', async () => {
    const deletedFolder = makeFolder();
    const errors: unknown[] = [];
    const onError = (error: unknown) => errors.push(error);
    const handler = graphqlHTTP(createSchema([]), { uploads: { tempDir: deletedFolder }, onError });
    await using server = await startServer(express().use(handler));
    rmSync(deletedFolder, { recursive: true });
    const { status, json } = await post(server.url, [...head, file('0', Buffer.alloc(500_000))]);
    expect([status, json.errors[0].message]).toEqual([500, 'Internal server error']);
    expect(errors).toMatchObject([{ code: 'ENOENT' }]);
  });
});

describe('a refusal before the end of the body', () => {
  const limited = { uploads: { maxFileBytes: 1 << 20, maxRequestBytes: 100 << 20 } };

  it.each([
    ['a file limit', head, 2 << 20, 413],
    ['a limit of the whole body, by its Content-Length', head, 0, 413],
    ['a bad path', [head[0], map({ 0: ['variables.nope'] })], 0, 400],
  ])(
    'uploads are refused while the client withholds the rest of the body: %s',
    async (_, parts, size, status) => {
      await using server = await startServer(graphqlHTTP(createSchema([]), limited));
      const announced = status === 413 && size === 0 ? 200 << 20 : 50 << 20;
      const socket = net.connect(server.port, '127.0.0.1').on('error', () => {});
      socket.write(
        `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: ${contentType}\r\nContent-Length: ${announced}\r\n\r\n`,
      );
      socket.write(encode([...parts, file('0', Buffer.alloc(size))], ''));
      const [response] = await once(socket, 'data');
      expect(String(response)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(String(response)).not.toMatch(/connection: close/i);
      socket.destroy();
    },
  );

  needs('curl').it(
    'curl and fetch always receive the refusal of an upload that they are still sending',
    async () => {
      await using server = await startServer(graphqlHTTP(createSchema([]), limited));
      const body = new Uint8Array(encode([...head, file('0', Buffer.alloc(8 << 20))]));
      for (let round = 0; round < 4; round++) {
        const response = await fetch(server.url, {
          method: 'POST',
          headers: { 'content-type': contentType },
          body,
        });
        expect([response.status, (await response.text()).includes('FILE_TOO_LARGE')]).toEqual([413, true]);
        const curl = run('curl', [
          '-sS',
          '-w',
          '%{http_code}',
          '-H',
          `content-type: ${contentType}`,
          '-H',
          'expect:',
          '--data-binary',
          '@-',
          server.url,
        ]);
        curl.child.stdin?.on('error', () => {}).end(body);
        expect((await curl).stdout).toMatch(/FILE_TOO_LARGE.*413$/);
      }
    },
  );

  it('uploads that were refused leave the connection usable', async () => {
    await using server = await startServer(graphqlHTTP(createSchema([]), limited));
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    let connections = 0;
    server.server.on('connection', () => connections++);
    for (let round = 0; round < 3; round++) {
      expect(
        (await post(server.url, [...head, file('0', Buffer.alloc(3 << 20))], {}, 'POST', agent)).status,
      ).toBe(413);
      expect((await post(server.url, [...head, file('0')], {}, 'POST', agent)).status).toBe(200);
    }
    expect(connections).toBe(1);
    agent.destroy();
  });
});

describe('streaming', () => {
  const streaming = (more: UploadOptions = {}): object => ({
    uploads: { streaming: true, tempDir: folder, ...more },
  });

  it('streaming starts resolvers after the part headers, and they read the file while it arrives', async () => {
    const seen: Seen = [];
    await using server = await startServer(graphqlHTTP(createSchema(seen), streaming()));
    const req = await begin(server.port, 1_000_000);
    await until(() => seen.length === 1);
    expect(seen[0]?.size).toBeUndefined();
    const reader = seen[0]?.createReadStream();
    await once(reader as NodeJS.EventEmitter, 'readable');
    req.end(CLOSING);
    expect((await responseOf(req)).json.data).toMatchObject({ one: { sha256: expect.any(String) } });
    await until(() => unlinkedFiles() === 0);
  });

  it('streaming reports an exceeded limit to the resolver that reads the file', async () => {
    await using server = await startServer(
      graphqlHTTP(createSchema([]), streaming({ maxFileBytes: 1_100_000 })),
    );
    const req = await begin(server.port, 1_000_000);
    req.write(Buffer.alloc(200_000));
    req.end(CLOSING);
    const { json } = await responseOf(req);
    expect(json.errors).toMatchObject([
      { message: expect.stringMatching(/larger than 1100000/), extensions: { code: 'FILE_TOO_LARGE' } },
    ]);
  });

  it.each([0, 10_000_000])(
    'streaming never completes a file whose last bytes exceed the limit, with %i bytes of memory',
    async (memoryBytes) => {
      await using server = await startServer(
        graphqlHTTP(createSchema([]), streaming({ maxFileBytes: 1000, memoryBytes })),
      );
      for (const size of [1001, 5000, 70_000]) {
        const { json } = await post(server.url, [...head, file('0', 'x'.repeat(size))]);
        expect(json.errors).toMatchObject([{ extensions: { code: 'FILE_TOO_LARGE' } }]);
      }
      await until(() => unlinkedFiles() === 0);
    },
  );

  it('the log names the option that refuses a file, and the response does not', async () => {
    const write = jest.spyOn(debug, 'log').mockImplementation(() => undefined);
    debug.enable('espalier:uploads');
    try {
      const handler = graphqlHTTP(createSchema([]), { uploads: { maxFileBytes: 3 } });
      await using server = await startServer(handler);
      const { json } = await post(server.url, [...head, file('0', 'text')]);
      expect(json.errors).toMatchObject([{ message: expect.stringMatching(/larger than 3 bytes; [^(]+$/) }]);
      expect(write.mock.lastCall).toContain(' (option "uploads.maxFileBytes")');
    } finally {
      debug.disable();
      write.mockRestore();
    }
  });

  it('streaming logs no abort when the response ends after the whole body has arrived', async () => {
    const lines: string[] = [];
    const write = jest
      .spyOn(debug, 'log')
      .mockImplementation((...words: unknown[]) => void lines.push(words.join(' ')));
    debug.enable('espalier:uploads');
    try {
      await using server = await startServer(graphqlHTTP(createSchema([]), streaming()));
      for (let time = 0; time < 5; time++) {
        expect((await post(server.url, [...head, file('0', 'text')])).json.errors).toBeUndefined();
      }
    } finally {
      debug.disable();
      write.mockRestore();
    }
    expect(lines.filter((line) => line.includes('closed the connection'))).toEqual([]);
  });

  it('streaming fails the readers of a file when the client aborts', async () => {
    const seen: Seen = [];
    await using server = await startServer(graphqlHTTP(createSchema(seen), streaming()));
    const req = await begin(server.port, 1_000_000);
    await until(() => seen.length === 1);
    const content = seen[0]?.text();
    req.destroy();
    await expect(content).rejects.toThrow(/client closed the connection|until the response ends/);
    await until(() => unlinkedFiles() === 0);
  });

  it('streaming sends the response immediately when no resolver reads the file', async () => {
    await using server = await startServer(graphqlHTTP(createSchema([]), streaming()));
    const req = await begin(server.port, 1_000_000, unread);
    expect((await responseOf(req)).json.data).toEqual({ unread: '0.txt' });
    await until(() => unlinkedFiles() === 0);
    req.destroy();
  });

  it('streaming refuses a missing file and wrong paths before any resolver runs', async () => {
    const seen: Seen = [];
    await using server = await startServer(graphqlHTTP(createSchema(seen), streaming()));
    expect((await post(server.url, head)).json.errors[0].extensions.code).toBe('FILE_MISSING');
    expect((await post(server.url, [head[0], map({ 0: ['query'] }), file('0')])).status).toBe(400);
    expect(seen).toEqual([]);
    expect((await post(server.url, [operations({ query: '{ hello }' }), map({})])).json.data.hello).toBe(
      'world',
    );
  });
});

describe('the async context of the application', () => {
  it('the AsyncLocalStorage of the application is available in resolvers of uploads', async () => {
    const storage = new AsyncLocalStorage<string>();
    const query = new GraphQLObjectType({
      name: 'Query',
      fields: { a: { type: GraphQLString, resolve: () => storage.getStore() } },
    });
    const handle = graphqlHTTP(new GraphQLSchema({ query }));
    await using server = await startServer((req, res) => storage.run('mine', () => handle(req, res)));
    expect((await post(server.url, [operations({ query: '{ a }' }), map({}), file('x')])).json.data.a).toBe(
      'mine',
    );
  });
});

describe('a body that earlier middleware has read', () => {
  it('uploads use a whole body in req.body or req.rawBody', async () => {
    const app = express();
    app.use(express.raw({ type: 'multipart/form-data', limit: '10mb' }), graphqlHTTP(createSchema([])));
    await using server = await startServer(app);
    expect((await post(server.url, [...head, file('0')])).json.data.one.text).toBe('content of 0');
  });

  it('uploads report a body that another parser has consumed to the operator', async () => {
    const errors: unknown[] = [];
    const app = express();
    app.use(
      (req, _res, next) => {
        req.resume().on('end', () => next());
      },
      graphqlHTTP(createSchema([]), { onError: (error) => errors.push(error) }),
    );
    await using server = await startServer(app);
    const { status, json } = await post(server.url, [...head, file('0')]);
    expect([status, json.errors[0].message]).toEqual([500, 'Internal server error']);
    expect(errors).toEqual([
      expect.objectContaining({ message: expect.stringMatching(/mount graphqlHTTP before multer/) }),
    ]);
  });
});

needs('curl').describe('Expect: 100-continue with createServer', () => {
  it.each([
    ['a limit', [], 413],
    ['the cross-site check', ['-H', 'origin: https://evil.test'], 403],
    ['no check', ['-F', '0=x;filename=a.txt'], 200],
  ])(
    'createServer sends 100 Continue to curl only for an accepted request: refused by %s',
    async (_, more, status) => {
      const server = createServer(graphqlHTTP(createSchema([]), { uploads: { maxRequestBytes: 1_000_000 } }));
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as net.AddressInfo;
      const fields = [`operations=${JSON.stringify(one)}`, 'map={"0":["variables.file"]}'].flatMap(
        (field) => ['-F', field],
      );
      const large = more.includes('-F') ? [] : ['-F', `0=@${folder}/large.tmp`];
      if (large.length > 0) writeFileSync(`${folder}/large.tmp`, Buffer.alloc(2 << 20));
      const format = ['-o', '/dev/null', '-w', '%{http_code} %{size_upload}'];
      const { stdout } = await run('curl', [
        '-sS',
        '-H',
        'expect: 100-continue',
        ...format,
        ...fields,
        ...large,
        ...more,
        `http://127.0.0.1:${port}`,
      ]);
      rmSync(`${folder}/large.tmp`, { force: true });
      const [code, sent] = stdout.split(' ').map(Number);
      expect([code, (sent as number) > 0]).toEqual([status, status === 200]);
      server.close();
      await once(server, 'close');
    },
  );
});

describe('over HTTP/2', () => {
  it('uploads over HTTP/2 need no Content-Length', async () => {
    const http2 = await import('node:http2');
    const server = createServer(graphqlHTTP(createSchema([])), { http2: true });
    server.listen(0);
    await once(server, 'listening');
    const session = http2.connect(`http://localhost:${(server.address() as net.AddressInfo).port}`);
    const stream = session.request({ ':method': 'POST', 'content-type': contentType });
    stream.end(encode([...head, file('0', Buffer.alloc(300_000))]));
    const json = JSON.parse((await stream.setEncoding('utf8').toArray()).join(''));
    expect(json.data.one.size).toBe(300_000);
    session.close();
    server.close();
    await once(server, 'close');
  });

  it.each([false, true])(
    'an upload whose body stops gets 408 after the deadline and leaves nothing, streaming %s',
    async (streaming) => {
      const http2 = await import('node:http2');
      const uploads = { streaming, tempDir: folder, memoryBytes: 0 };
      const limits = { bodyTimeout: 200 };
      const server = createServer(graphqlHTTP(createSchema([]), { uploads, limits }), { http2: true });
      server.listen(0);
      await once(server, 'listening');
      const session = http2.connect(`http://localhost:${(server.address() as net.AddressInfo).port}`);
      const stream = session.request({ ':method': 'POST', 'content-type': contentType });
      stream.write(encode([...head, file('0', Buffer.alloc(300_000))], '').subarray(0, -2));
      const body = (await stream.setEncoding('utf8').toArray()).join('');
      expect(body).toContain('"code":"BODY_TIMEOUT"');
      await until(() => unlinkedFiles() === 0);
      session.close();
      server.close();
      await once(server, 'close');
    },
  );

  it('an upload over HTTP/1 has the same deadline', async () => {
    const server = http.createServer(graphqlHTTP(createSchema([]), { limits: { bodyTimeout: 200 } }));
    server.listen(0);
    await once(server, 'listening');
    const req = await begin((server.address() as net.AddressInfo).port, 1000);
    const { status, json } = await responseOf(req);
    expect([status, JSON.stringify(json)]).toEqual([408, expect.stringContaining('BODY_TIMEOUT')]);
    req.destroy();
    server.close();
    await once(server, 'close');
  });

  it('an upload may take longer than bodyTimeout while 16 KiB arrive within each', async () => {
    jest.useFakeTimers({ doNotFake: ['setTimeout', 'setImmediate', 'nextTick', 'queueMicrotask', 'Date'] });
    atEnd(() => void jest.useRealTimers());
    const bodyTimeout = 8000;
    await using server = await startServer(graphqlHTTP(createSchema([]), { limits: { bodyTimeout } }));
    const sockets: net.Socket[] = [];
    server.server.on('connection', (socket) => sockets.push(socket));
    const req = await begin(server.port, 20_000);
    const arrived = (bytes: number): Promise<void> => until(() => (sockets[0]?.bytesRead ?? 0) > bytes);
    await arrived(20_000);
    for (const round of [1, 2, 3]) {
      jest.advanceTimersByTime(bodyTimeout * 0.9);
      req.write(Buffer.alloc(20_000));
      await arrived(20_000 * (round + 1));
    }
    req.write('a few bytes');
    jest.advanceTimersByTime(bodyTimeout * 1.3);
    expect((await responseOf(req)).status).toBe(408);
    req.destroy();
  });
});

/** A child process whose test has failed would prevent the test runner from exiting. */
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

interface Child {
  child: ChildProcess;
  port: number;
  status(): Promise<Record<string, number>>;
  /** Waits until the server has closed its temporary files: the client may have the response earlier. */
  closed(): Promise<void>;
  /** The text that the process has written to standard error. */
  log(): string;
}

/** Starts child.ts; `limit` is a shell command that runs before it. */
async function startChild(limit = ''): Promise<Child> {
  const script = `${limit} exec "${process.execPath}" --import tsx "${join(__dirname, 'child.ts')}" "${folder}"`;
  const env = { ...process.env, TSX_TSCONFIG_PATH: join(__dirname, '../tsconfig.json') };
  const child = spawn('bash', ['-c', script], { env, stdio: ['ignore', 'inherit', 'pipe', 'ipc'] });
  children.push(child);
  let text = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const [port] = (await once(child, 'message')) as [number];
  const status = async (): Promise<Record<string, number>> =>
    (await fetch(`http://127.0.0.1:${port}/status`)).json() as Promise<Record<string, number>>;
  const closed = async (): Promise<void> => {
    while ((await status()).deleted !== 0);
  };
  return { child, port, status, closed, log: () => text };
}

describe('a server in a child process', () => {
  it('uploads of a large file do not grow memory, and SIGKILL leaves no temporary file', async () => {
    const { child, port, status } = await startChild();
    await post(`http://127.0.0.1:${port}`, [...head, file('0', Buffer.alloc(1 << 20))]);
    const before = await status();
    const req = await begin(port, 1 << 20, unread);
    const chunk = Buffer.alloc(1 << 20);
    for (let sent = 0; sent < 128; sent++) if (!req.write(chunk)) await once(req, 'drain');
    const during = await status();
    expect(during.deleted).toBe(1);
    expect((during.rss as number) - (before.rss as number)).toBeLessThan(100 << 20);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(readdirSync(folder)).toEqual([]);
    req.destroy();
  });

  it('SIGKILL in the middle of forms leaves no file of receiveFiles, and the next process receives forms', async () => {
    const { child, port, status } = await startChild();
    const requests = [1, 2, 3].map((count) =>
      begin(port, 1 << 20, Array<Part>(count).fill(file('0', Buffer.alloc(1 << 20))), '/form'),
    );
    await Promise.all(requests);
    // The files are on the disk: those that have arrived, and those in the middle of which the process ends.
    while ((await status()).deleted !== 9);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(readdirSync(folder)).toEqual([]);
    for (const request of requests) (await request).destroy();
    const next = await startChild();
    const large = [file('0', Buffer.alloc(1 << 20))];
    expect((await post(`http://127.0.0.1:${next.port}/form`, large)).json).toBe(1);
    await next.closed();
    next.child.kill();
    await once(next.child, 'exit');
  });

  it('uploads get 507 when the disk is full, the error is reported, and the server keeps running', async () => {
    // The largest file a process may write, in KiB; the signal that comes with it is ignored.
    const { child, port, closed, log } = await startChild('trap "" XFSZ; ulimit -f 2048;');
    const url = `http://127.0.0.1:${port}`;
    const { status: responded, json } = await post(url, [...head, file('0', Buffer.alloc(3 << 20))]);
    expect([responded, json.errors[0].extensions.code]).toEqual([507, 'NO_SPACE']);
    expect(JSON.stringify(json)).not.toContain('EFBIG');
    await until(() => /espalier: unexpected error in an operation \(http\):.*EFBIG/.test(log()));
    expect((await post(url, [...head, file('0')])).json.data.one.text).toBe('content of 0');
    await closed();
    child.kill();
    await once(child, 'exit');
  });

  it('uploads get 503 when no descriptor is left, the error is reported, and the server recovers', async () => {
    const { child, port, closed, log } = await startChild('ulimit -n 1000;');
    const url = `http://127.0.0.1:${port}`;
    // Loads the parser.
    expect((await post(url, [...head, file('0')])).status).toBe(200);
    const large = [...head, file('0', Buffer.alloc(1 << 20))];
    const { status: responded, headers, json } = await post(`${url}/exhausted`, large);
    expect([responded, headers['retry-after']]).toEqual([503, '1']);
    expect(json.errors[0].extensions.code).toBe('STORAGE_UNAVAILABLE');
    expect(JSON.stringify(json)).not.toContain('EMFILE');
    await until(() => /unexpected error in an operation \(http\):.*EMFILE/.test(log()));
    expect((await post(url, large)).status).toBe(200);
    await closed();
    child.kill();
    await once(child, 'exit');
  });
});
