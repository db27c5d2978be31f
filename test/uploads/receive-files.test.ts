/** @tags node-lines */
import { AsyncLocalStorage } from 'node:async_hooks';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import * as http from 'node:http';
import * as net from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import connect from 'connect';
import { createServer } from 'espalier';
import { type ReceivedFile, type ReceiveFilesOptions, receiveFiles } from 'espalier/uploads';
import express, { type ErrorRequestHandler } from 'express';
import express4 from 'express4';
import { descriptorsIn } from '../descriptors.ts';
import { atEnd, listen, makeFolder } from '../kit.ts';
import { needs } from '../programs.ts';
import { until } from '../until.ts';
import { BOUNDARY, encode, file, type Part, post } from './form.ts';

const field = (name: string, body: string): Part => ({ name, body });
const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');

/** A socket that takes everything, without a connection. */
class Sink extends net.Socket {
  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    done();
  }

  override _writev(_chunks: unknown, done: () => void): void {
    done();
  }
}

let folder: string;
beforeEach(() => {
  folder = makeFolder();
  atEnd(() => expect(readdirSync(folder)).toEqual([]));
});

/** What a handler got: the texts of the files and the fields. */
async function shown(
  files: Readonly<Record<string, readonly ReceivedFile[]>>,
  body: unknown,
): Promise<unknown> {
  const lists = Object.entries(files).map(async ([name, list]) => [
    name,
    await Promise.all(list.map(async (each) => [each.filename, each.size, await each.text()])),
  ]);
  return { files: Object.fromEntries(await Promise.all(lists)), body };
}

/** An app whose handler returns what it has received. */
async function start(
  options?: ReceiveFilesOptions,
): Promise<{ url: string; port: number; failures: unknown[] }> {
  const receive = receiveFiles({ tempDir: folder, ...options });
  const failures: unknown[] = [];
  const onError: ErrorRequestHandler = ({ status = 500, code, message }, _req, res, _next) => {
    if (status === 500) failures.push(message);
    res.status(status).json({ error: { code, message } });
  };
  const app = express().post('/', receive, async (req, res) => {
    const { files, body } = receive.form(req);
    expect([Reflect.get(req, 'files'), req.body]).toEqual([files, body]);
    res.json(await shown(files, body));
  });
  const { url, port } = await listen(createServer(app.use(onError)));
  return { url, port, failures };
}

describe('receiveFiles', () => {
  it('receiveFiles gives the handler files by name and text fields, lists for repeated names', async () => {
    const { url } = await start();
    const parts = [
      field('title', 'Øresund'),
      field('tag', 'sea'),
      file('photo', 'one', 'ø.txt'),
      field('tag', 'bridge'),
      file('photo', 'two'),
      field('__proto__', 'x'),
    ];
    const { status, json } = await post(url, parts);
    expect(status).toBe(200);
    expect(json).toEqual({
      files: {
        photo: [
          ['ø.txt', 3, 'one'],
          ['photo.txt', 3, 'two'],
        ],
      },
      body: JSON.parse('{ "title": "Øresund", "tag": ["sea", "bridge"], "__proto__": "x" }'),
    });
  });

  it('receiveFiles has an empty list for each declared name, also for an empty input of a browser', async () => {
    const { url } = await start({ files: { photo: 1, gallery: 2 } });
    const empty = { name: 'photo', filename: '', type: 'application/octet-stream', body: '' };
    expect((await post(url, [empty])).json).toEqual({ files: { photo: [], gallery: [] }, body: {} });
  });

  it('receiveFiles keeps nested names, and decodes the quotes and line breaks that browsers encode in names', async () => {
    const { url } = await start();
    const names = [
      'a',
      'a[b]',
      'a[b]',
      'a[]',
      'a[4294967294]',
      'a[__proto__][x]',
      'say %22hi%22',
      '100%25 %',
    ];
    const parts = [...names.map((name) => field(name, name)), file('f[0]', 'x', 'q%22%0d%0a.txt')];
    expect((await post(url, parts)).json).toEqual({
      files: { 'f[0]': [['q".txt', 1, 'x']] },
      body: {
        a: 'a',
        'a[b]': ['a[b]', 'a[b]'],
        'a[]': 'a[]',
        'a[4294967294]': 'a[4294967294]',
        'a[__proto__][x]': 'a[__proto__][x]',
        'say "hi"': 'say %22hi%22',
        '100%25 %': '100%25 %',
      },
    });
  });

  it('receiveFiles decodes a text in Latin-1, and refuses a charset that the parser does not know', async () => {
    const { url, failures } = await start();
    const text = (charset: string): Part => ({
      head: `Content-Disposition: form-data; name="a"\r\nContent-Type: text/plain; charset=${charset}`,
      body: Buffer.from('caf\xe9', 'latin1'),
    });
    expect((await post(url, [text('ISO-8859-1')])).json.body).toEqual({ a: 'café' });
    for (const charset of ['utf-16', 'shift_jis', 'x']) {
      const { status, json } = await post(url, [text(charset)]);
      expect([status, json.error.code]).toEqual([400, 'BAD_MULTIPART']);
    }
    expect(failures).toEqual([]);
  });

  it.each([
    'multipart/form-data',
    'multipart/form-data; boundary',
    `multipart/form-data; boundary="${BOUNDARY}`,
    `multipart/form-data; boundary=${BOUNDARY};;`,
    `multipart/form-data; boundary=${BOUNDARY} x`,
    `multipart/form-data boundary=${BOUNDARY}`,
  ])(
    'receiveFiles refuses the Content-Type %s, and does not take the form for an empty one',
    async (type) => {
      const { url } = await start();
      const { status, json } = await post(url, [file('a')], { 'content-type': type });
      expect([status, json.error.code]).toEqual([400, 'BAD_MULTIPART']);
    },
  );

  needs('curl').it('receiveFiles gets the names of fields and files as curl sends them', async () => {
    const { url } = await start();
    const source = makeFolder();
    writeFileSync(join(source, 'full'), 'text');
    writeFileSync(join(source, 'empty'), '');
    const sent = [
      'we"ird\\name=1',
      'ü=ö',
      'a.b[c]=2',
      'f=@full;filename=a"b.txt',
      'f=@full;filename=../../x',
      'g=@full;type=image/png;filename=日本 語.png',
      'g=@empty',
    ];
    const fields = sent.flatMap((each) => ['-F', each]);
    const { stdout } = await promisify(execFile)('curl', ['-sS', ...fields, url], { cwd: source });
    expect(JSON.parse(stdout)).toEqual({
      files: {
        f: [
          ['a"b.txt', 4, 'text'],
          ['x', 4, 'text'],
        ],
        g: [
          ['日本 語.png', 4, 'text'],
          ['empty', 0, ''],
        ],
      },
      body: { 'we"ird\\name': '1', ü: 'ö', 'a.b[c]': '2' },
    });
  });

  it('receiveFiles passes requests with another body on, with empty lists', async () => {
    const receive = receiveFiles({ files: { photo: 1 } });
    const app = express().use(express.urlencoded(), receive, (req, res) => {
      res.json([receive.form(req).files, req.body ?? null]);
    });
    const { url } = await listen(app);
    expect(await (await fetch(url)).json()).toEqual([{ photo: [] }, null]);
    const body = new URLSearchParams({ a: 'b' });
    expect(await (await fetch(url, { method: 'POST', body })).json()).toEqual([{ photo: [] }, { a: 'b' }]);
  });

  it.each([
    ['Express 4', () => express4()],
    ['Connect', () => connect()],
  ])('receiveFiles works under %s', async (_, createApp) => {
    const receive = receiveFiles({ tempDir: folder });
    const app = createApp();
    app.use(receive);
    app.use((req: http.IncomingMessage, res: http.ServerResponse) => {
      void shown(receive.form(req).files, receive.form(req).body).then((all) => res.end(JSON.stringify(all)));
    });
    const { url } = await listen(app as http.RequestListener);
    const { json } = await post(url, [field('a', '1'), file('f')]);
    expect(json).toEqual({ files: { f: [['f.txt', 12, 'content of f']] }, body: { a: '1' } });
  });

  it('receiveFiles works as a function of node:http', async () => {
    const receive = receiveFiles({ tempDir: folder });
    const { url } = await listen((req, res) => {
      receive(req, res, (error) => {
        if (error !== undefined) throw error;
        void shown(receive.form(req).files, {}).then((all) => res.end(JSON.stringify(all)));
      });
    });
    expect((await post(url, [file('f', 'x')])).json).toEqual({ files: { f: [['f.txt', 1, 'x']] }, body: {} });
  });

  it('form() throws for a request that the middleware has not received', async () => {
    const receive = receiveFiles();
    const { url } = await listen((req, res) => {
      expect(() => receive.form(req)).toThrow(TypeError);
      res.end('{}');
    });
    await fetch(url);
  });

  it.each([
    ['a file under another name', { files: { photo: 1 } }, [file('other')], 400, 'UNEXPECTED_FILE'],
    ['any file when none is expected', { files: {} }, [file('other')], 400, 'UNEXPECTED_FILE'],
    ['a name of an object prototype', { files: { photo: 1 } }, [file('toString')], 400, 'UNEXPECTED_FILE'],
    ['one file too many of a name', { files: { a: 1, b: 9 } }, [file('a'), file('a')], 413, 'TOO_MANY_FILES'],
    ['one file too many', { maxFiles: 2 }, [file('a'), file('a'), file('b')], 413, 'TOO_MANY_FILES'],
    ['a byte too much of a file', { maxFileBytes: 5 }, [file('a', '123456')], 413, 'FILE_TOO_LARGE'],
    ['a byte too much of a text', { maxFieldBytes: 3 }, [field('a', '1234')], 413, 'FIELD_TOO_LARGE'],
    ['a text field too many', {}, Array(1001).fill(field('a', '')), 413, 'TOO_MANY_FIELDS'],
    [
      'a byte too much of all texts',
      { maxFieldBytes: 1 },
      Array(17).fill(field('a', '1')),
      413,
      'FIELD_TOO_LARGE',
    ],
    ['a body that is too large', { maxRequestBytes: 9 }, [field('a', '')], 413, 'BODY_TOO_LARGE'],
    ['content that the list does not have', { accept: ['image/*'] }, [file('a')], 415, 'FILE_NOT_ACCEPTED'],
    [
      'an empty file with a list of types',
      { accept: ['image/*'] },
      [file('a', '')],
      415,
      'FILE_NOT_ACCEPTED',
    ],
    ['a file that the function refuses', { accept: () => false }, [file('a')], 415, 'FILE_NOT_ACCEPTED'],
    [
      'a part without a name',
      {},
      [{ head: 'Content-Disposition: form-data', body: 'x' }],
      400,
      'BAD_MULTIPART',
    ],
  ])(
    'receiveFiles refuses %s with its status and code, and without the handler',
    async (_, options, parts, status, code) => {
      const { url, failures } = await start(options as ReceiveFilesOptions);
      const response = await post(url, parts as Part[]);
      expect([response.status, response.json.error.code]).toEqual([status, code]);
      expect(response.json.error.message).not.toContain('(option');
      expect(failures).toEqual([]);
      await until(() => descriptorsIn(folder) === 0);
    },
  );

  it('receiveFiles refuses a body that is cut off, compressed, or consumed by another parser', async () => {
    const { url } = await start();
    expect((await post(url, encode([file('a')]).subarray(0, -9))).json.error.code).toBe('BAD_MULTIPART');
    expect((await post(url, [file('a')], { 'content-encoding': 'gzip' })).status).toBe(415);
    const consumed = express().post('/', express.raw({ type: () => true }), receiveFiles(), (req, res) => {
      res.json(Object.keys(req.files ?? {}));
    });
    expect((await post((await listen(consumed)).url, [file('a')])).json).toEqual(['a']);
  });

  it.each([
    ['Express 5', () => express()],
    ['Express 4', () => express4()],
    ['Connect', () => connect()],
  ])(
    'the default error handler of %s sends the status and the headers of a refusal',
    async (_, createApp) => {
      jest.spyOn(console, 'error').mockImplementation();
      const app = createApp();
      app.use(receiveFiles({ maxFileBytes: 1 }));
      const { url } = await listen(app as http.RequestListener);
      const body = new FormData();
      body.set('a', new Blob(['22']), '<b>.png');
      expect((await fetch(url, { method: 'POST', body })).status).toBe(413);
      const headers = {
        'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
        'content-encoding': 'br',
      };
      const compressed = await fetch(url, { method: 'POST', headers, body: 'x' });
      expect([compressed.status, compressed.headers.get('accept-encoding')]).toEqual([415, 'identity']);
    },
  );
});

describe('the types of received files', () => {
  it('a body that is cut at any byte is refused with 400', async () => {
    const { url, failures } = await start({ memoryBytes: 0 });
    const whole = encode([field('a', 'b'), file('f', 'content')]);
    const last = whole.length - '--\r\n'.length;
    const statuses = new Set<number>();
    for (let length = 0; length <= last; length++)
      statuses.add((await post(url, whole.subarray(0, length))).status);
    expect([...statuses]).toEqual([400]);
    expect(failures).toEqual([]);
  });

  it.each([
    ['image/png', '89504e470d0a1a0a0000000d49484452'],
    ['image/jpeg', 'ffd8ffe000104a464946'],
    ['image/gif', '474946383961'],
    ['image/webp', '52494646240000005745425056503820'],
    ['image/avif', '0000001c667479706d6966310000000061766966'],
    ['image/heic', '0000001c6674797068656963000000006d696631'],
    ['video/mp4', '000000206674797069736f6d0000020069736f6d69736f32'],
    ['video/quicktime', '0000001466747970717420200000000071742020'],
    ['audio/mp4', '0000001c667479704d34412000000000'],
    ['video/webm', '1a45dfa39f4286810142f7810142f2810442f381084282847765626d'],
    ['audio/mpeg', '4944330400000000'],
    ['audio/ogg', `4f67675300020000000000000000${'00'.repeat(14)}4f70757348656164`],
    ['audio/wav', '52494646240000005741564566'],
    ['application/pdf', '255044462d312e37'],
    ['application/zip', '504b0304'],
    [null, '3c68746d6c3e'],
    [null, ''],
    [null, '000000'],
    [null, 'ffffffff66747970'],
  ])('type() is %s by the first bytes %s, whatever the client declares', async (type, hex) => {
    const receive = receiveFiles({ tempDir: folder });
    const app = express().post('/', receive, async (req, res) => {
      const [first] = receive.form(req).files['a'] ?? [];
      res.json((await first?.type()) ?? null);
    });
    const { url } = await listen(app);
    expect((await post(url, [file('a', Buffer.from(hex, 'hex'), 'a.html')])).json).toBe(type);
  });

  it.each([
    ['in memory', '64mb'],
    ['on disk', 0],
  ])('a list of types checks content whose first bytes arrive one at a time: %s', async (_, memoryBytes) => {
    const { port, failures } = await start({ accept: ['image/png'], memoryBytes });
    const socket = net.connect(port, '127.0.0.1').setNoDelay();
    const body = encode([file('a', Buffer.concat([PNG, Buffer.alloc(100)]), 'a.html')]);
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=${BOUNDARY}\r\n`);
    socket.write(`Content-Length: ${body.length}\r\nConnection: close\r\n\r\n`);
    for (const byte of body) {
      socket.write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await text(socket)).toMatch(/^HTTP\/1.1 200 /);
    expect(failures).toEqual([]);
  });

  it('a list of types refuses a large file before it has arrived', async () => {
    const { port } = await start({ accept: ['image/png'] });
    const socket = net.connect(port, '127.0.0.1');
    const start_ = encode([file('a', Buffer.alloc(5000, '<'), 'a.png')], '');
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=${BOUNDARY}\r\n`);
    socket.write('Content-Length: 20000000\r\n\r\n');
    socket.write(start_.subarray(0, -2));
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1.1 415 /);
    socket.destroy();
  });
});

describe('the storage of received files', () => {
  it('receiveFiles writes large files to an unlinked file, which is closed after the response', async () => {
    const { url } = await start({ memoryBytes: 256_000 });
    const { json } = await post(url, [file('a', 'x'.repeat(300_000))]);
    expect(json.files.a[0][1]).toBe(300_000);
    await until(() => descriptorsIn(folder) === 0);
  });

  it("storage 'memory' never writes to disk, and refuses with 503 what the memory cannot hold", async () => {
    const warnings: string[] = [];
    jest.spyOn(process, 'emitWarning').mockImplementation((warning) => void warnings.push(String(warning)));
    const receive = receiveFiles({ tempDir: folder, storage: 'memory', memoryBytes: 1_000_000 });
    const app = express().post('/', receive, async (req, res) => {
      const [first] = receive.form(req).files['a'] ?? [];
      res.json([descriptorsIn(folder), first?.size, (await first?.bytes())?.length]);
    });
    const onError: ErrorRequestHandler = ({ status, headers, code }, _req, res, _next) => {
      res.status(status).set(headers).json({ error: { code } });
    };
    const { url } = await listen(app.use(onError));
    expect((await post(url, [file('a', Buffer.alloc(900_000))])).json).toEqual([0, 900_000, 900_000]);
    const full = await post(url, [file('a', Buffer.alloc(600_000)), file('b', Buffer.alloc(600_000))]);
    expect([full.status, full.headers['retry-after'], full.json.error.code]).toEqual([
      503,
      '1',
      'STORAGE_UNAVAILABLE',
    ]);
    await until(() => warnings.length === 1);
    expect(warnings[0]).toContain('memoryBytes');
    expect((await post(url, [file('a', Buffer.alloc(900_000))])).status).toBe(200);
  });

  it("storage 'memory' joins the chunks of a file that arrives in single bytes", async () => {
    const { port } = await start({ storage: 'memory' });
    const socket = net.connect(port, '127.0.0.1').setNoDelay();
    const body = encode([file('a', Buffer.from(Array.from({ length: 900 }, (_, i) => 97 + (i % 26))))]);
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=${BOUNDARY}\r\n`);
    socket.write(`Content-Length: ${body.length}\r\nConnection: close\r\n\r\n`);
    for (const byte of body) {
      socket.write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await text(socket)).toContain(
      `"a.txt",900,"${'abcdefghijklmnopqrstuvwxyz'.repeat(35).slice(0, 900)}"`,
    );
  });

  it('a storage function gets the stream while it arrives, and its result is stored', async () => {
    const receive = receiveFiles({
      tempDir: folder,
      storage: async (each) => (await text(each.createReadStream())).length,
    });
    const app = express().post('/', receive, (req, res) => {
      const lengths: (number | undefined)[] = (receive.form(req).files['a'] ?? []).map(
        ({ stored }) => stored,
      );
      res.json(lengths);
    });
    const { url } = await listen(app);
    expect((await post(url, [file('a', 'x'.repeat(400_000)), file('a', 'y')])).json).toEqual([400_000, 1]);
  });

  it('an exception of a storage function reaches the error handler, and the handler does not run', async () => {
    const { url, failures } = await start({
      storage: async (each) => {
        if ((await each.text()) === 'bad') throw new Error('the store is down');
      },
    });
    expect((await post(url, [file('a', 'bad'), file('a', 'good')])).status).toBe(500);
    expect(failures).toEqual(['the store is down']);
    expect((await post(url, [file('a', 'good')])).status).toBe(200);
  });

  it('a storage function that rejects half way refuses the form while the client is still sending', async () => {
    const { port, failures } = await start({
      memoryBytes: 0,
      storage: async (each) => {
        for await (const chunk of each.createReadStream())
          throw new Error(`failed after ${chunk.length > 0}`);
      },
    });
    const socket = net.connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=${BOUNDARY}\r\n`);
    socket.write('Content-Length: 9000000\r\n\r\n');
    socket.write(encode([file('a', Buffer.alloc(200_000))], '').subarray(0, -2));
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1.1 500 /);
    expect(failures).toEqual(['failed after true']);
    await until(() => descriptorsIn(folder) === 0);
    socket.destroy();
  });

  it('a storage function whose disk is full gets the form refused with 507, and a warning for the operator', async () => {
    const warnings: string[] = [];
    jest.spyOn(process, 'emitWarning').mockImplementation((warning) => void warnings.push(String(warning)));
    const full = Object.assign(new Error('the store is full'), { code: 'ENOSPC' });
    const { url } = await start({ storage: () => Promise.reject(full) });
    const { status, json } = await post(url, [file('a')]);
    expect([status, json.error.code, warnings.length]).toEqual([507, 'NO_SPACE', 1]);
    expect(json.error.message).not.toContain('the store is full');
  });

  it('a storage function that rejects without an Error gets 500, and not the status of a malformed form', async () => {
    const { url, failures } = await start({ storage: () => Promise.reject() });
    expect((await post(url, [file('a')])).status).toBe(500);
    expect(failures).toHaveLength(1);
  });

  it('accept and storage run in the asynchronous context of the request', async () => {
    const context = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const see = (): true => {
      seen.push(context.getStore());
      return true;
    };
    const receive = receiveFiles({ tempDir: folder, accept: see, storage: see });
    const { url } = await listen((req, res) => {
      context.run('mine', () => receive(req, res, () => res.end(JSON.stringify(see()))));
    });
    expect((await post(url, [field('x', '1'), file('a', Buffer.alloc(300_000))])).json).toBe(true);
    expect(seen).toEqual(['mine', 'mine', 'mine']);
  });

  it('the stream of a storage function fails when a later part is refused', async () => {
    const ends: unknown[] = [];
    const { url } = await start({
      storage: (each) => text(each.createReadStream()).catch((error: Error) => void ends.push(error.message)),
      maxFileBytes: 5,
    });
    expect((await post(url, [file('a', 'toolong')])).status).toBe(413);
    await until(() => ends.length === 1);
    expect(ends[0]).toMatch(/is larger than 5 bytes/);
  });

  it('the stream of a whole file fails as well when a later part is refused', async () => {
    const stored: ReceivedFile[] = [];
    const { port } = await start({ maxFileBytes: 5, storage: (each) => void stored.push(each) });
    const body = encode([file('a', 'whole'), file('b', 'too long')]);
    const socket = net.connect(port, '127.0.0.1');
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=${BOUNDARY}\r\n`);
    socket.write(`Content-Length: ${body.length}\r\n\r\n`);
    const end = body.indexOf('too long');
    socket.write(body.subarray(0, end));
    await until(() => stored[0]?.toJSON().size === 5);
    socket.write(body.subarray(end));
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1.1 413 /);
    await expect(stored[0]?.text()).rejects.toThrow(/is larger than 5 bytes/);
    socket.destroy();
  });

  it('no file is left of requests that the client aborts, and next is not called', async () => {
    const called: string[] = [];
    const receive = receiveFiles({
      tempDir: folder,
      memoryBytes: 0,
    });
    const { port } = await listen((req, res) => receive(req, res, () => void called.push('next')));
    const sockets = Array.from({ length: 20 }, (_, index) => {
      const socket = net.connect(port, '127.0.0.1').on('error', () => undefined);
      socket.write(
        `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=${BOUNDARY}\r\n`,
      );
      socket.write('Content-Length: 9000000\r\n\r\n');
      socket.write(encode([file('a', Buffer.alloc(20_000 + index * 9000))], ''));
      return socket;
    });
    await until(() => descriptorsIn(folder) > 10);
    for (const socket of sockets) socket.destroy();
    await until(() => descriptorsIn(folder) === 0);
    expect(called).toEqual([]);
  });

  it('no file is left of a handler that throws, or whose client disconnects while it runs', async () => {
    jest.spyOn(console, 'error').mockImplementation();
    const receive = receiveFiles({ tempDir: folder, memoryBytes: 0 });
    const gone: unknown[] = [];
    const app = express().post('/throws', receive, () => {
      throw new Error('the handler fails');
    });
    app.post('/waits', receive, async (req, res) => {
      req.socket.destroy();
      await once(res, 'close');
      const [first] = receive.form(req).files['a'] ?? [];
      gone.push(await first?.bytes().catch((error: Error) => error.message));
    });
    const { url } = await listen(app);
    const body = [file('a', Buffer.alloc(300_000))];
    const headers = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
    const failing = await fetch(`${url}/throws`, {
      method: 'POST',
      headers,
      body: new Uint8Array(encode(body)),
    });
    expect(failing.status).toBe(500);
    await expect(post(`${url}/waits`, body)).rejects.toThrow();
    await until(() => gone.length === 1 && descriptorsIn(folder) === 0);
    expect(gone[0]).toMatch(/until the response ends/);
  });

  it('no descriptor is left of a response that finishes and never closes, as those of serverless adapters', async () => {
    const receive = receiveFiles({ tempDir: folder, memoryBytes: 0 });
    const body = encode([file('a', Buffer.alloc(300_000))]);
    const headers = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
    const req = Object.assign(new http.IncomingMessage(new net.Socket()), { method: 'POST', headers, body });
    const res = new http.ServerResponse(req);
    res.assignSocket(new Sink());
    const received: unknown[] = [];
    receive(req, res, () => {
      received.push(descriptorsIn(folder), receive.form(req).files['a']?.[0]?.size);
      res.end('ok');
    });
    await once(res, 'finish');
    await until(() => descriptorsIn(folder) === 0);
    expect([...received, res.closed]).toEqual([1, 300_000, false]);
  });

  it('saveTo keeps a file after the response', async () => {
    const target = makeFolder();
    const receive = receiveFiles({ tempDir: folder });
    const app = express().post('/', receive, async (req, res) => {
      for (const each of receive.form(req).files['a'] ?? []) await each.saveTo(join(target, 'kept'));
      res.json('saved');
    });
    const { url } = await listen(app);
    expect((await post(url, [file('a', 'kept')])).json).toBe('saved');
    expect(readFileSync(join(target, 'kept'), 'utf8')).toBe('kept');
  });
});
