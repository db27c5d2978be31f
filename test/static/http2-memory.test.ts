/** @tags node-lines slow */
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, createServer } from 'node:http2';
import type { Server } from 'node:net';
import express from 'express';
import { createServer as createEspalierServer } from '../../middleware/server.ts';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import type { Middleware } from '../../types/connect.ts';
import { listen } from '../kit.ts';
import { bare, makeFolder, requestOften } from './fixture.ts';

const large = Buffer.from(Array.from({ length: 3_000_000 }, (_, index) => (index * 31) % 251));
const files = { 'large.bin': large, 'small.txt': 'small' };
const root = makeFolder(files);

/** Runs a function with a session of a server. */
async function withSession(
  server: Server,
  run: (session: ClientHttp2Session) => Promise<void>,
): Promise<void> {
  const { url } = await listen(server);
  const session = connect(url);
  try {
    await run(session);
  } finally {
    session.destroy();
  }
}

async function statusOf(stream: ClientHttp2Stream): Promise<unknown> {
  const [headers] = await once(stream, 'response');
  return headers[':status'];
}

async function bodyOf(stream: ClientHttp2Stream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

// Together more than the 10 MB of memory that Node grants the streams of a session.
const DOWNLOADS = 30;

describe.each<[string, Middleware]>([
  ['files in memory', staticFiles(root)],
  ['files on disk', staticFiles(root, { cache: false })],
  ['a source', staticFiles(memoryFiles(files), { cache: false })],
])('staticFiles with %s over HTTP/2', (_name, serve) => {
  beforeAll(() => requestOften(serve, '/large.bin'));

  it.each([
    ['node:http2', () => createServer(bare(serve) as never)],
    ['createServer', () => createEspalierServer(express().use(serve), { http2: true })],
  ])(
    'staticFiles responds to new requests of a session whose client reads many large files slowly (%s)',
    async (_server, make) => {
      await withSession(make(), async (session) => {
        // The client reads the headers only.
        const downloads: ClientHttp2Stream[] = [];
        for (let i = 0; i < DOWNLOADS; i++) {
          const range = i % 2 === 0 ? {} : { range: 'bytes=1000-2999999' };
          const download = session.request({ ':path': '/large.bin', ...range });
          expect(await statusOf(download)).toBe(i % 2 === 0 ? 200 : 206);
          downloads.push(download);
        }
        const small = session.request({ ':path': '/small.txt' });
        expect((await bodyOf(small)).toString()).toBe('small');
        for (const stream of downloads.slice(4)) stream.close();
        const bodies = await Promise.all(downloads.slice(0, 4).map(bodyOf));
        const isWhole = bodies.map((body, i) => body.equals(i % 2 === 0 ? large : large.subarray(1000)));
        expect(isWhole).toEqual([true, true, true, true]);
      });
    },
  );
});
