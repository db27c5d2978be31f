import { readFileSync } from 'node:fs';
import { type IncomingHttpHeaders, type RequestListener, request } from 'node:http';
import { connect } from 'node:net';
import type { Middleware } from '../../types/connect.ts';
import * as kit from '../kit.ts';

export { put } from '../kit.ts';

let lastMade = 0;

/** Creates a directory. Tests use `www/` as the root, other files are outside it. */
export function makeFolder(files: Record<string, string | Buffer>, above?: string): string {
  const folder = kit.makeFolder(files, above);
  lastMade = Date.now();
  return folder;
}

/** Starts a server, and returns its port. */
export async function listen(handler: RequestListener): Promise<number> {
  const { port } = await kit.listen(handler);
  // A streamed file has no ETag in the first 20 ms after it was written: wait until makeFolder's files are older.
  await new Promise((done) => setTimeout(done, Math.max(0, lastMade + 30 - Date.now())));
  return port;
}

/** Runs the middleware on node:http. `next()` responds with 404 and `passed on`, `next(error)` with 500 and the message. */
export function bare(middleware: Middleware): RequestListener {
  return (req, res) =>
    middleware(req, res, (error) => {
      res.statusCode = error === undefined ? 404 : 500;
      res.end(error === undefined ? 'passed on' : String(error));
    });
}

/** Requests a large file until its body is in memory. */
export async function requestOften(middleware: Middleware, path: string): Promise<void> {
  const port = await listen(bare(middleware));
  for (let i = 0; i < 10; i++) await get(port, path);
}

export interface TestResponse {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
  text: string;
}

/** Sends one request on a new connection. */
export function get(
  port: number,
  path: string,
  headers: Record<string, string | string[]> = {},
  method = 'GET',
): Promise<TestResponse> {
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

/** Writes bytes to a socket and returns everything until the server closes it, as latin1. */
export function raw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
  });
}

/** Sends a GET with an unmodified request target and `Connection: close`. */
export function rawGet(port: number, target: string, headers = ''): Promise<string> {
  return raw(port, `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${headers}\r\n`);
}

/** Bytes that this process has read from files and sockets. */
export function bytesRead(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
}

/**
 * Counts the received bytes of a body. Calls `onFirstBytes` when the first bytes have arrived. The connection may end with a
 * FIN or a reset.
 */
export function receivedBytes(port: number, target: string, onFirstBytes: () => void): Promise<number> {
  return new Promise((resolve) => {
    let bytes = 0;
    let head: number | undefined;
    const socket = connect(port, '127.0.0.1');
    socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    socket.once('data', onFirstBytes);
    socket.on('data', (chunk) => {
      head ??= chunk.indexOf('\r\n\r\n') + 4;
      bytes += chunk.length;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(bytes - (head ?? 0)));
  });
}
