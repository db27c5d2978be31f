import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers';
import type { InjectedConnection } from '../../../types/testing.ts';
import { connectInMemory, type MemorySocket } from '../connection/memory-socket.ts';
import { connect, type Target } from '../connection/target.ts';
import { cookieHeader } from './cookies.ts';
import type { Body, Message } from './requests.ts';

/** A connection of a client to a target. */
export interface Connection {
  readonly client: MemorySocket;
  readonly server: MemorySocket;
}

/** The request headers by name. */
type RequestHeaders = Record<string, string | number | string[]>;

/** Connects a client within the process. */
export function openConnection(
  target: Target,
  { remoteAddress = '127.0.0.1' }: InjectedConnection,
): Connection {
  const connection = connectInMemory({ remoteAddress, isEncrypted: target.server instanceof HttpsServer });
  connect(target, connection.server);
  return connection;
}

/** The headers that a request has unless the user sets others. */
export function requestHeaders(
  defaults: Readonly<Record<string, string>>,
  { headers = {}, cookies }: InjectedConnection,
): RequestHeaders {
  const all: RequestHeaders = { host: 'localhost', ...defaults };
  if (cookies !== undefined && Object.keys(cookies).length > 0) all['cookie'] = cookieHeader(cookies);
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) all[name.toLowerCase()] = typeof value === 'object' ? [...value] : value;
  }
  return all;
}

/** Sends a request over a connection. Resolves when the headers of its response have arrived. */
export async function sendRequest(
  connection: Connection,
  message: Message,
  headers: RequestHeaders,
): Promise<IncomingMessage> {
  const { client } = connection;
  const { method, path, body } = message;
  const options = { createConnection: () => client, method, path, headers: withFraming(headers, body) };
  const request = httpRequest(options);
  const responded = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve);
    // Also for errors after the response, such as those of a body that the server has not read.
    request.on('error', (error) => reject(connection.server.handlerError?.error ?? error));
    // Without an error: after 101 Switching Protocols.
    request.once('close', () => reject(new Error('The server closed the connection without a response')));
  });
  if (headers['expect'] === undefined) sendBody(request, body);
  else {
    request.once('continue', () => sendBody(request, body));
    request.flushHeaders();
  }
  return responded;
}

/** Adds the header that marks the end of a body: Node adds none to GET, DELETE and OPTIONS, whose body a server ignores. */
function withFraming(headers: RequestHeaders, body: Body): RequestHeaders {
  if (body === undefined || 'content-length' in headers || 'transfer-encoding' in headers) return headers;
  return Buffer.isBuffer(body)
    ? { ...headers, 'content-length': body.length }
    : { ...headers, 'transfer-encoding': 'chunked' };
}

function sendBody(request: ClientRequest, body: Body): void {
  if (body === undefined || Buffer.isBuffer(body)) {
    request.end(body);
    return;
  }
  const source = Readable.from(body, { objectMode: false });
  source.once('error', (error) => request.destroy(error));
  // A server that refuses a body closes the connection.
  request.once('close', () => source.destroy());
  source.pipe(request);
}

/** Closes both ends, and resolves when the server has released everything that belongs to the connection. */
export async function closeConnection({ client, server }: Connection): Promise<void> {
  const closed = server.closed || new Promise((resolve) => server.once('close', resolve));
  client.destroy();
  // A server that does not read does not see that the client has disconnected. A timeout would close its socket.
  setImmediate(() => setImmediate(() => server.destroy()));
  await closed;
}
