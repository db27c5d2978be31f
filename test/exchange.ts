import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import * as https from 'node:https';
import type { Server } from 'node:net';
import { resolve } from 'node:path';
import { listen } from './kit.ts';

const pathOf = (name: string): string => resolve(__dirname, 'fixtures/tls', name);

/** The files with the key and the certificate of a server named `localhost`. */
export const tlsFiles = { key: pathOf('key.pem'), cert: pathOf('cert.pem') };
export const tls = {
  key: readFileSync(tlsFiles.key, 'utf8'),
  cert: readFileSync(tlsFiles.cert, 'utf8'),
};
/** Client options that trust the certificate. */
export const trusted = { ca: tls.cert, servername: 'localhost' };

export interface ExchangeRequest {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

export interface ExchangeResponse {
  status: number;
  headers: Record<string, unknown>;
  body: string;
}

/** Makes a server listen, runs a function with its port, and closes it. */
export async function serving<T>(server: Server, run: (port: number) => Promise<T>): Promise<T> {
  const { port } = await listen(server);
  try {
    return await run(port);
  } finally {
    await new Promise((done) => server.close(done));
  }
}

const UNSTEADY = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding', ':status']);

/** Removes headers that depend on the time or the protocol and not on the app. */
function steady(headers: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !UNSTEADY.has(name)));
}

/** Sends one request on a new connection, over one protocol. */
export type Exchange = (port: number, options: ExchangeRequest) => Promise<ExchangeResponse>;

export const requestHttp1: Exchange = (port, options) => overHttp1(http.request, port, options);
export const requestHttps: Exchange = (port, options) => overHttp1(https.request, port, options);
export const requestHttp2: Exchange = (port, options) => overHttp2(`http://localhost:${port}`, options);
export const requestSecureHttp2: Exchange = (port, options) =>
  overHttp2(`https://localhost:${port}`, options);

async function overHttp1(
  send: typeof http.request,
  port: number,
  options: ExchangeRequest,
): Promise<ExchangeResponse> {
  const { method = 'GET', path, headers = {}, body } = options;
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const all = { host: 'site.test', ...length, ...headers };
  const request = send({ ...trusted, host: '127.0.0.1', port, method, path, headers: all, agent: false }).end(
    body,
  );
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return {
    status: response.statusCode as number,
    headers: steady(response.headers),
    body: await text(response),
  };
}

async function overHttp2(origin: string, options: ExchangeRequest): Promise<ExchangeResponse> {
  const { method = 'GET', path, headers = {}, body } = options;
  const session = http2.connect(origin, trusted);
  try {
    const head = { ':method': method, ':path': path, ':authority': 'site.test', ...headers };
    const stream = session.request(head, { endStream: body === undefined });
    const responded = once(stream, 'response') as Promise<
      [http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader]
    >;
    if (body !== undefined) stream.end(body);
    const [given] = await responded;
    return { status: given[':status'] as number, headers: steady(given), body: await text(stream) };
  } finally {
    // Not `close()`: it waits for a request body that the server has stopped reading.
    session.destroy();
  }
}

async function text(stream: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(Buffer.from(part));
  return Buffer.concat(parts).toString('latin1');
}
