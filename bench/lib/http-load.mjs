import { connect } from 'node:net';
import { ResponseReader } from './response-reader.mjs';

/** The bytes of a request. */
function bytesOf({ method = 'GET', path, headers = {}, body }) {
  const payload = body === undefined ? Buffer.alloc(0) : Buffer.from(body);
  const lines = [`${method} ${path} HTTP/1.1`, 'host: localhost'];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  if (body !== undefined) lines.push(`content-length: ${payload.length}`);
  return { method, bytes: Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), payload]) };
}

const preparedOf = new Map();

/** The requests of a load as bytes, which all its rounds share. */
function prepare(load) {
  let prepared = preparedOf.get(load);
  if (prepared === undefined) {
    const { requests, distinct = 1 } = load;
    const made =
      typeof requests === 'function'
        ? Array.from({ length: distinct }, (_, index) => requests(index))
        : requests;
    prepared = made.map(bytesOf);
    preparedOf.set(load, prepared);
  }
  return prepared;
}

/** The requests that each server has had. A round continues there, or a cache would know its requests. */
const sentTo = new Map();

/** Sends `count` requests over keep-alive connections, one at a time each, and counts complete responses. */
export function httpLoad(load, port, count) {
  const { connections = 32, expect: { status = 200 } = {} } = load;
  const prepared = prepare(load);
  const server = `${port} ${load.name}`;
  const first = sentTo.get(server) ?? 0;
  sentTo.set(server, first + count);
  return new Promise((resolve, reject) => {
    const sockets = [];
    let sent = 0;
    let done = 0;
    const finish = (error) => {
      for (const socket of sockets) socket.destroy();
      if (error) reject(error);
      else resolve({ operations: done });
    };
    const drive = () => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      sockets.push(socket);
      const next = () => {
        if (sent === count) return;
        const { method, bytes } = prepared[(first + sent++) % prepared.length];
        reader.begin(method === 'HEAD');
        socket.write(bytes);
      };
      const reader = new ResponseReader((seen) => {
        if (seen !== status) return finish(new Error(`${load.name}: a response had status ${seen}`));
        if (++done === count) finish();
        else next();
      });
      socket.on('connect', next);
      socket.on('data', (chunk) => reader.read(chunk));
      socket.on('error', finish);
      socket.on(
        'close',
        () => done < count && finish(new Error(`${load.name}: the server closed a connection`)),
      );
    };
    for (let index = 0; index < Math.min(connections, count); index++) drive();
  });
}

/** Sends one request on a new connection and returns the whole response. */
export function once(port, request) {
  const { method, bytes } = bytesOf({ ...request, headers: { connection: 'close', ...request.headers } });
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const parts = [];
    let result;
    const reader = new ResponseReader(
      (status, headers) => {
        result = { status, headers };
        socket.destroy();
      },
      (part) => parts.push(Buffer.from(part)),
    );
    reader.begin(method === 'HEAD');
    socket.on('connect', () => socket.write(bytes));
    socket.on('data', (chunk) => reader.read(chunk));
    socket.on('error', reject);
    socket.on('close', () => {
      if (result === undefined) reject(new Error(`${request.path}: the response is not complete`));
      else resolve({ ...result, body: Buffer.concat(parts) });
    });
  });
}
