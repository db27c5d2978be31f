/** @tags node-lines */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import compression from 'compression';
import session from 'express-session';
import { createServer } from '../../middleware/server.ts';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import { eachExpress } from '../express.ts';
import { get, listen, makeFolder, requestOften } from './fixture.ts';

const large = Buffer.from('a line of text that repeats\n'.repeat(100_000));
const files = { 'large.txt': large, 'medium.txt': large.subarray(0, 200_000), 'small.txt': 'small' };
const root = makeFolder(files);

interface Http2Reply {
  readonly status: unknown;
  readonly headers: Record<string, unknown>;
  readonly body: Buffer;
  readonly code: number;
}

/** Sends one request over HTTP/2 to a server, and closes the server. */
async function getHttp2(
  server: Server,
  path: string,
  given: Record<string, string> = {},
): Promise<Http2Reply> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const stream = client.request({ ':path': path, ...given });
    let headers: Record<string, unknown> = {};
    const chunks: Buffer[] = [];
    stream.on('response', (received) => {
      headers = received;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', () => undefined);
    await new Promise((resolve) => stream.once('close', resolve));
    return { status: headers[':status'], headers, body: Buffer.concat(chunks), code: stream.rstCode };
  } finally {
    client.destroy();
    server.close();
  }
}

eachExpress((express) => {
  it.each(Object.keys(files))('staticFiles sends %s after express-session over HTTP/2', async (name) => {
    const options = { secret: 'x', resave: true, saveUninitialized: true };
    for (const source of [root, memoryFiles(files)]) {
      for (const cache of [true, false]) {
        const app = express().use(session(options), staticFiles(source, cache ? {} : { cache }));
        const { status, headers, body } = await getHttp2(createServer(app, { http2: true }), `/${name}`);
        expect([status, body.equals(Buffer.from(files[name as keyof typeof files]))]).toEqual([200, true]);
        expect(String(headers['set-cookie'])).toContain('connect.sid');
      }
    }
  });

  it('staticFiles ignores Range after compression over HTTP/2, which would compress the range', async () => {
    const app = express().use(compression(), staticFiles(root));
    const headers = { range: 'bytes=10-19', 'accept-encoding': 'gzip' };
    expect((await getHttp2(createServer(app, { http2: true }), '/medium.txt', headers)).status).toBe(200);
    const bareApp = express().use(staticFiles(root));
    const { status, body } = await getHttp2(createServer(bareApp, { http2: true }), '/medium.txt', headers);
    expect([status, body.toString()]).toEqual([206, large.toString('latin1', 10, 20)]);
  });
});

describe.each([
  ['from disk', () => staticFiles(root, { cache: false })],
  ['from memory', () => staticFiles(root)],
  ['of a source', () => staticFiles(memoryFiles(files), { cache: false })],
])('a response %s whose method end was replaced', (_name, make) => {
  it.each(Object.keys(files))(
    'staticFiles reports the error once if end of the response throws for %s',
    async (name) => {
      const reported: unknown[] = [];
      const log = jest.spyOn(console, 'error').mockImplementation((_message, error) => {
        reported.push(error);
      });
      const failure = new Error('a logger has failed');
      const serve = make();
      await requestOften(serve, `/${name}`);
      const handler = (req: Parameters<typeof serve>[0], res: ServerResponse): void => {
        res.end = () => {
          throw failure;
        };
        serve(req, res, (error) => {
          reported.push(error);
          res.destroy();
        });
      };
      const port = await listen(handler);
      // The client of a source has all bytes before the response ends.
      await get(port, `/${name}`).catch(() => undefined);
      expect(reported).toEqual([failure]);
      await getHttp2(createHttp2Server(handler as never), `/${name}`);
      expect(reported).toEqual([failure, failure]);
      log.mockRestore();
    },
  );
});
