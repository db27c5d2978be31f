import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, request, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Middleware } from '../../types/connect.ts';

const folders: string[] = [];
const servers: Server[] = [];
let lastMade = 0;

afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A directory that is removed when the suite ends. `www/` in it is meant as the root, the rest lies outside. */
export function makeFolder(files: Record<string, string | Buffer>, above = tmpdir()): string {
  const folder = realpathSync(mkdtempSync(join(above, 'espalier-static-')));
  for (const [name, content] of Object.entries(files)) put(join(folder, name), content);
  folders.push(folder);
  lastMade = Date.now();
  return folder;
}

/** Writes a file and the directories above it. */
export function put(path: string, content: string | Buffer): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/** A server on a port of its own, closed when the suite ends. */
export async function listen(handler: (req: never, res: never) => void): Promise<number> {
  const server: Server = createServer(handler as never);
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  // A large file gets no tag in the first 20 ms after it was written: let what makeFolder wrote grow older.
  await new Promise((done) => setTimeout(done, Math.max(0, lastMade + 30 - Date.now())));
  return (server.address() as AddressInfo).port;
}

/** The middleware on bare node:http; what it passes on is answered 404 `passed on`, its errors 500 with the message. */
export function bare(middleware: Middleware): (req: never, res: never) => void {
  return (req: Parameters<Middleware>[0], res: Parameters<Middleware>[1]) =>
    middleware(req, res, (error) => {
      res.statusCode = error === undefined ? 404 : 500;
      res.end(error === undefined ? 'passed on' : String(error));
    });
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
  text: string;
}

/** One request with its headers, on a connection of its own. */
export function get(
  port: number,
  path: string,
  headers: Record<string, string | string[]> = {},
  method = 'GET',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const req = request({ port, path, headers, method, agent: false }, (res) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.on('error', reject);
      res.on('end', () => {
        const body = Buffer.concat(chunks);
        resolve({ status: res.statusCode ?? 0, headers: res.headers, body, text: body.toString() });
      });
    });
    req.on('error', reject);
    req.end();
  });
}

/** Bytes over a socket, as they stand; the whole answer as text (latin1), until the server ends it. */
export function raw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
  });
}

/** A GET of a raw target; `Connection: close` ends the answer. */
export function rawGet(port: number, target: string, headers = ''): Promise<string> {
  return raw(port, `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${headers}\r\n`);
}
