/** @tags once slow */
import { createHook } from 'node:async_hooks';
import { connect, type Socket } from 'node:net';
import { staticFiles } from '../../middleware/static.ts';
import { localDeviceOf } from '../../src/static/root.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

const SIZE = 500 * 1024;
const contentOf = (name: string): Buffer => Buffer.alloc(SIZE, `${name} `);
const NAMES = ['a', 'b', 'c', 'd'];
const LARGE = Buffer.alloc(16 << 20, 'large ');
const root = makeFolder({
  ...Object.fromEntries(NAMES.map((name) => [`${name}.bin`, contentOf(name)])),
  'large.bin': LARGE,
});

/** Requests a file many times over one connection, whose responses exceed the buffers of the kernel. */
function pipeline(port: number, name: string, count: number): Socket {
  const socket = connect(port, '127.0.0.1');
  const head = `GET /${name}.bin HTTP/1.1\r\nHost: x\r\n`;
  socket.write(`${`${head}\r\n`.repeat(count - 1)}${head}Connection: close\r\n\r\n`);
  socket.pause();
  return socket;
}

async function bodiesOf(socket: Socket): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const bodies: Buffer[] = [];
  for (let at = bytes.indexOf('\r\n\r\n'); at >= 0; at = bytes.indexOf('\r\n\r\n', at + SIZE)) {
    bodies.push(bytes.subarray(at + 4, at + 4 + SIZE));
  }
  return bodies;
}

async function listenWithoutCache(): Promise<number> {
  const port = await listen(bare(staticFiles(root, { cache: false })));
  for (const name of NAMES) await get(port, `/${name}.bin`);
  return port;
}

it('staticFiles does not reuse the memory of a body before a slow client has received it', async () => {
  const port = await listenWithoutCache();
  const slow = NAMES.map((name) => pipeline(port, name, 40));
  for (let round = 0; round < 10; round++) {
    for (const name of NAMES)
      expect((await get(port, `/${name}.bin`)).body.equals(contentOf(name))).toBe(true);
  }
  const received = await Promise.all(slow.map(bodiesOf));
  for (const [index, name] of NAMES.entries()) {
    expect(received[index]).toHaveLength(40);
    expect(received[index]?.every((body) => body.equals(contentOf(name)))).toBe(true);
  }
});

/** Counts the file operations that the thread pool does meanwhile. */
async function countPoolOperations(work: () => Promise<void>): Promise<number> {
  let count = 0;
  const hook = createHook({
    init: (_id, type) => {
      if (type === 'FSREQCALLBACK') count++;
    },
  }).enable();
  await work();
  hook.disable();
  return count;
}

it('staticFiles reads a file of 500 KiB without the thread pool, also after clients have disconnected', async () => {
  const port = await listenWithoutCache();
  for (let round = 0; round < 5; round++) {
    const sockets = Array.from({ length: 40 }, () => pipeline(port, 'a', 40));
    await get(port, '/b.bin');
    const closed = sockets.map((socket) => new Promise((resolve) => socket.on('close', resolve)));
    for (const socket of sockets) socket.destroy();
    await Promise.all(closed);
  }
  // Only /tmp on a network file system needs the thread pool.
  if (localDeviceOf(root) === undefined) return;
  let operations = 1;
  // The server may not have noticed the last disconnections yet.
  for (let attempt = 0; attempt < 50 && operations > 0; attempt++) {
    operations = await countPoolOperations(async () => {
      expect((await get(port, '/c.bin')).body.equals(contentOf('c'))).toBe(true);
    });
  }
  expect(operations).toBe(0);
});

it('staticFiles streams a file of 16 MiB without the thread pool', async () => {
  const port = await listen(bare(staticFiles(root, { cache: false })));
  await get(port, '/large.bin');
  if (localDeviceOf(root) === undefined) return;
  let operations = 1;
  // The thread pool reads for a while if a chunk really came from a disk.
  for (let attempt = 0; attempt < 50 && operations > 0; attempt++) {
    operations = await countPoolOperations(async () => {
      expect((await get(port, '/large.bin')).body.equals(LARGE)).toBe(true);
    });
  }
  expect(operations).toBe(0);
});
