/** @tags node-lines graphql */
import { randomBytes } from 'node:crypto';
import { fstatSync, readdirSync, readSync, writeSync } from 'node:fs';
import * as net from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { graphqlHTTP } from '../../middleware/index.ts';
import {
  openThenUnlink,
  openUnlinkedTempFile,
  readAll,
  readSpool,
  Spool,
  type SpoolSettings,
} from '../../src/uploads/spool.ts';
import { descriptorsIn } from '../descriptors.ts';
import { atEnd, makeFolder } from '../kit.ts';
import { BOUNDARY, encode, file, map, operations } from './form.ts';
import { createSchema, ONE } from './schema.ts';
import { startServer } from './server.ts';

let folder: string;
beforeAll(() => {
  folder = makeFolder();
  atEnd(() => expect(readdirSync(folder)).toEqual([]));
});

const settings = (more: Partial<SpoolSettings> = {}): SpoolSettings => ({
  memoryBytesPerFile: 1000,
  budget: { left: 100_000 },
  tempDir: folder,
  ...more,
});
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a spool', () => {
  it('a spool delivers all bytes to every reader, from memory and from disk', async () => {
    const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 700 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(pieces, fc.integer({ min: 1, max: 900 }), fc.nat(12), async (given, size, start) => {
        const spool = new Spool(settings());
        const readers: Promise<Buffer>[] = [];
        for (const [index, piece] of given.entries()) {
          if (index === start) readers.push(buffer(readSpool(spool, { highWaterMark: size })));
          spool.write(Buffer.from(piece));
          if (index % 3 === 0) await turn();
        }
        readers.push(readAll(spool).then((all) => Buffer.from(all)));
        await spool.end();
        readers.push(
          readAll(spool).then((all) => Buffer.from(all)),
          buffer(readSpool(spool, { highWaterMark: size })),
        );
        const expected = Buffer.concat(given);
        for (const content of await Promise.all(readers)) expect(content.equals(expected)).toBe(true);
        spool.release();
      }),
      { numRuns: 60 },
    );
  });

  it('a spool writes a file to disk when it arrives byte by byte', async () => {
    const spool = new Spool(settings({ memoryBytesPerFile: 1_000_000 }));
    const expected = randomBytes(600);
    for (const byte of expected) spool.write(Buffer.from([byte]));
    await spool.end();
    expect(descriptorsIn(folder)).toBe(1);
    expect(Buffer.from(await readAll(spool)).equals(expected)).toBe(true);
    spool.release();
  });

  it('a spool applies backpressure while the disk is slow', async () => {
    const spool = new Spool(settings());
    const room = new Promise<void>((resolve) => {
      spool.onDrain = resolve;
    });
    let more = true;
    while (more) more = spool.write(randomBytes(65_536));
    expect(spool.size).toBeLessThan(2 << 20);
    await room;
    await spool.end();
    spool.release();
  });

  it('a spool returns its memory to the budget', async () => {
    const budget = { left: 1000 };
    const first = new Spool(settings({ budget }));
    first.write(Buffer.alloc(900));
    expect(budget.left).toBe(100);
    first.write(Buffer.alloc(900));
    await first.end();
    expect(budget.left).toBe(1000);
    const second = new Spool(settings({ budget }));
    second.write(Buffer.alloc(900));
    second.release();
    second.release();
    first.release();
    expect(budget.left).toBe(1000);
  });

  it('a spool that is released while its file opens closes the file', async () => {
    const spool = new Spool(settings());
    spool.write(Buffer.alloc(5000));
    const reader = buffer(readSpool(spool));
    spool.release();
    await expect(reader).rejects.toThrow(/until the response ends/);
    await expect(spool.end()).rejects.toThrow(/until the response ends/);
    expect(spool.complete).toBe(false);
  });
});

describe('a temporary file', () => {
  it.each([
    ['on this platform', openUnlinkedTempFile],
    ['with the fallback', openThenUnlink],
  ])('a temporary file has no name and mode 0600: %s', async (_, open) => {
    const file = await open(folder);
    const { fd } = file;
    expect(readdirSync(folder)).toEqual([]);
    const { mode, nlink } = fstatSync(fd);
    expect([mode & 0o777, nlink]).toEqual([0o600, 0]);
    writeSync(fd, 'abc', 0);
    const into = Buffer.alloc(3);
    expect(readSync(fd, into, 0, 3, 0)).toBe(3);
    expect(String(into)).toBe('abc');
    await file.close();
  });

  it('openUnlinkedTempFile reports an error of the directory', async () => {
    await expect(openUnlinkedTempFile(join(folder, 'nowhere'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('a form in pieces', () => {
  it('a form is parsed equally in chunks of any size', async () => {
    // Text that begins like the boundary.
    const content = `\r--${BOUNDARY}\r\n--${BOUNDARY.slice(0, -1)}\r\n-`;
    const body = encode([
      operations({ query: ONE, variables: { file: null } }),
      map({ 0: ['variables.file'] }),
      file('0', content, 'é.txt'),
    ]);
    await using server = await startServer(graphqlHTTP(createSchema([])));
    const cuts = fc.uniqueArray(fc.integer({ min: 1, max: body.length - 1 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(cuts, async (places) => {
        const socket = net.connect({ port: server.port, host: '127.0.0.1', noDelay: true });
        socket.write(
          `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=${BOUNDARY}\r\n` +
            `Content-Length: ${body.length}\r\n\r\n`,
        );
        let from = 0;
        for (const place of [...places.toSorted((a, b) => a - b), body.length]) {
          socket.write(body.subarray(from, place));
          from = place;
          await turn();
        }
        const response = (await buffer(socket)).toString();
        expect(JSON.parse(response.slice(response.indexOf('{')))).toMatchObject({
          data: { one: { filename: 'é.txt', text: content } },
        });
      }),
      { numRuns: 60 },
    );
  });
});
