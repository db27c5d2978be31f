import { once } from 'node:events';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import type { AddressInfo, Server } from 'node:net';

export interface Ask {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

export interface Answer {
  status: number;
  headers: Record<string, unknown>;
  body: string;
}

/** Makes a server listen, runs a function with its port, and closes it. */
export async function serving<T>(server: Server, run: (port: number) => Promise<T>): Promise<T> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    return await run((server.address() as AddressInfo).port);
  } finally {
    await new Promise((done) => server.close(done));
  }
}

const UNSTEADY = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding', ':status']);

/** Without what differs from one minute or protocol to the next, which is not the app's doing. */
function steady(headers: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !UNSTEADY.has(name)));
}

/** One request over HTTP/1.1, on a connection of its own. */
export async function askHttp1(
  port: number,
  { method = 'GET', path, headers = {}, body }: Ask,
): Promise<Answer> {
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const options = {
    host: '127.0.0.1',
    port,
    method,
    path,
    headers: { host: 'site.test', ...length, ...headers },
    agent: false,
  };
  const request = http.request(options).end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return {
    status: response.statusCode as number,
    headers: steady(response.headers),
    body: await text(response),
  };
}

/** One request over HTTP/2 without TLS, on a session of its own. */
export async function askHttp2(
  port: number,
  { method = 'GET', path, headers = {}, body }: Ask,
): Promise<Answer> {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  try {
    const head = { ':method': method, ':path': path, ':authority': 'site.test', ...headers };
    const stream = session.request(head, { endStream: body === undefined });
    const answered = once(stream, 'response') as Promise<
      [http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader]
    >;
    if (body !== undefined) stream.end(body);
    const [given] = await answered;
    return { status: given[':status'] as number, headers: steady(given), body: await text(stream) };
  } finally {
    await new Promise<void>((done) => session.close(done));
  }
}

async function text(stream: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(Buffer.from(part));
  return Buffer.concat(parts).toString('latin1');
}
