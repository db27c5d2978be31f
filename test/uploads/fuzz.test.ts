/** @tags once slow */
import { readdirSync } from 'node:fs';
import * as net from 'node:net';
import { receiveFiles } from 'espalier/uploads';
import express, { type ErrorRequestHandler } from 'express';
import { descriptorsIn } from '../descriptors.ts';
import { listen, makeFolder } from '../kit.ts';
import { until } from '../until.ts';

// Random and hostile forms. Set UPLOAD_FUZZ to the number of bodies, and UPLOAD_FUZZ_SEED to repeat a run.

const RUNS = Number(process.env['UPLOAD_FUZZ'] ?? 300);
const SEED = Number(process.env['UPLOAD_FUZZ_SEED'] ?? 1);
const CONCURRENT = 16;
const BOUNDARY = 'fuzz-7d1f';

jest.setTimeout(60_000 + RUNS * 40);

/** mulberry32 */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

const NAMES = [
  'a',
  'photo',
  '',
  '__proto__',
  'constructor',
  'a[b][c]',
  'a[]',
  'ü',
  '"',
  '\\',
  'x'.repeat(600),
  '%00',
  'a\r\nb',
];
const FILENAMES = [
  'a.png',
  '',
  '..',
  '../../etc/passwd',
  'a%0d%0ab.txt',
  'q".png',
  "'",
  '\u202egnp.exe',
  'y'.repeat(900),
  'C:\\x',
  '.',
];
const TYPES = [
  'text/plain',
  'image/png',
  'text/plain; charset=utf-16',
  'multipart/mixed; boundary=b',
  'x',
  '',
  'application/octet-stream',
  ';;;',
  'text/plain; charset="',
];
const HEADS = [
  'Content-Disposition: form-data',
  'Content-Disposition: attachment; name=a',
  'Content-Disposition: form-data; name=a; name=b',
  "Content-Disposition: form-data; name*=UTF-8''%C3%BC; filename*=UTF-8''%ZZ",
  'Content-Disposition: form-data; name="a"; filename="b',
  'Content-Disposition: form-data; name=a\nX: y',
  '__proto__: x\r\nContent-Disposition: form-data; name="a"',
  ': no name',
  'Content-Disposition',
  `X: ${'z'.repeat(20_000)}`,
  'Content-Transfer-Encoding: base64\r\nContent-Disposition: form-data; name="a"; filename="b"',
  '',
];

function partOf(random: (below: number) => number): Buffer {
  const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T;
  let head: string = pick(HEADS);
  if (random(4) > 0) {
    head = `Content-Disposition: form-data; name="${pick(NAMES)}"`;
    if (random(2) === 0) head += `; filename="${pick(FILENAMES)}"`;
    if (random(2) === 0) head += `\r\nContent-Type: ${pick(TYPES)}`;
  }
  const size = random(20) === 0 ? random(400_000) : random(300);
  const content = Buffer.alloc(size, random(256));
  return Buffer.concat([Buffer.from(`--${BOUNDARY}\r\n${head}\r\n\r\n`), content, Buffer.from('\r\n')]);
}

/** One request: its bytes, and whether the client disconnects after them. */
function requestOf(random: (below: number) => number, index: number): { bytes: Buffer; isCut: boolean } {
  const many = index % 500 === 7 ? 10_000 : random(6);
  const small = Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="p"\r\n\r\n\r\n`);
  const parts =
    many === 10_000 ? Array(many).fill(small) : Array.from({ length: many }, () => partOf(random));
  const closing = [`--${BOUNDARY}--\r\n`, '', `--${BOUNDARY}`, `--${BOUNDARY}-`, '--wrong--\r\n', '\r\n\r\n'][
    random(4) === 0 ? random(6) : 0
  ];
  let body = Buffer.concat([...parts, Buffer.from(closing as string)]);
  if (random(4) === 0) body = body.subarray(0, random(body.length + 1));
  if (random(4) === 0 && body.length > 0) {
    body = Buffer.from(body);
    for (let flips = random(8); flips >= 0; flips--) body[random(body.length)] = random(256);
  }
  const boundaries = [BOUNDARY, `"${BOUNDARY}"`, 'other', '', 'b'.repeat(400), `${BOUNDARY}; charset=utf-16`];
  const boundary = boundaries[random(5) === 0 ? random(6) : 0];
  const isCut = random(5) === 0;
  const length = isCut ? body.length + 1 + random(1000) : body.length;
  const framing = `Content-Length: ${length}`;
  const head = `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=${boundary}\r\n${framing}\r\n\r\n`;
  return { bytes: Buffer.concat([Buffer.from(head), body]), isCut };
}

/** Sends a request, in pieces if it is small, and returns the status; undefined if the client disconnects. */
function send(
  port: number,
  { bytes, isCut }: { bytes: Buffer; isCut: boolean },
  pieces: number,
): Promise<number | undefined> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1').setNoDelay();
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1');
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(answer === '' ? undefined : Number(answer.slice(9, 12))));
    const step = Math.max(1, Math.ceil(bytes.length / pieces));
    const write = (at: number): void => {
      if (at >= bytes.length) {
        if (isCut) socket.destroy();
        return;
      }
      socket.write(bytes.subarray(at, at + step), () => setImmediate(write, at + step));
    };
    socket.on('connect', () => write(0));
  });
}

it(`${RUNS} random and hostile forms cause no 500, and leave no file, descriptor or memory`, async () => {
  const folder = makeFolder();
  const receive = receiveFiles({ tempDir: folder, memoryBytes: 256_000, maxFileBytes: 300_000 });
  const typed = receiveFiles({ tempDir: folder, accept: ['image/*'], files: { photo: 2, a: 9 } });
  const failures: unknown[] = [];
  const onError: ErrorRequestHandler = (error, _req, res, _next) => {
    const { status = 500 } = error;
    if (status === 500) failures.push(error);
    res.status(status).end();
  };
  let turn = 0;
  const app = express();
  app.use((req, res, next) => (turn++ % 4 === 0 ? typed : receive)(req, res, next));
  app.use((req, res) => {
    const { files, body } = turn % 2 === 0 ? { files: req.files, body: req.body } : { files: {}, body: {} };
    expect(Object.getPrototypeOf(body) ?? Object.prototype).toBe(Object.prototype);
    res.json(Object.keys(files ?? {}).length);
  });
  const { port } = await listen(app.use(onError));
  const random = randomOf(SEED);
  const statuses = new Map<number | undefined, number>();
  let next = 0;
  let early = 0;
  const worker = async (): Promise<void> => {
    while (next < RUNS) {
      const index = next++;
      const status = await send(port, requestOf(random, index), 1 + random(12));
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (index === Math.floor(RUNS / 4)) early = process.memoryUsage().rss;
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, worker));
  await until(() => descriptorsIn(folder) === 0);
  expect(failures).toEqual([]);
  expect(statuses.get(500)).toBeUndefined();
  expect(readdirSync(folder)).toEqual([]);
  expect([...statuses.keys()].filter((status) => ![undefined, 200, 400, 413, 415].includes(status))).toEqual(
    [],
  );
  expect(statuses.get(200)).toBeGreaterThan(RUNS / 20);
  expect(statuses.get(400)).toBeGreaterThan(RUNS / 20);
  expect((process.memoryUsage().rss - early) / 2 ** 20).toBeLessThan(150);
  if (process.env['UPLOAD_FUZZ'] !== undefined)
    process.stderr.write(
      `${JSON.stringify([...statuses])} ${(process.memoryUsage().rss - early) >> 20} MiB\n`,
    );
});
