/** @tags node-lines slow */
import { once } from 'node:events';
import type * as http from 'node:http';
import * as http2 from 'node:http2';
import * as net from 'node:net';
import { deferContinue, drainRequest } from '../../src/http/body.ts';
import { listen } from '../kit.ts';
import { startServer } from '../uploads/server.ts';

/** Refuses every body with 413 immediately; the response to GET is `ok`. */
function refuse(req: http.IncomingMessage, res: http.ServerResponse): void {
  if (req.method === 'GET') {
    res.end('ok');
    return;
  }
  res.statusCode = 413;
  drainRequest(req, res);
  res.end('too large');
}

interface Wire {
  socket: net.Socket;
  closed: Promise<unknown>;
  until(text: string): Promise<string>;
}

async function connect(port: number): Promise<Wire> {
  const socket = net.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.on('error', () => {});
  const closed = new Promise((resolve) => socket.once('close', resolve));
  let seen = '';
  socket.on('data', (chunk) => {
    seen += chunk;
  });
  const until = async (text: string): Promise<string> => {
    while (!seen.includes(text)) await once(socket, 'data');
    const response = seen;
    seen = '';
    return response;
  };
  return { socket, closed, until };
}

describe('a response before the end of the request body', () => {
  it('drainRequest lets the server send a response while the client withholds the body, and keeps the connection usable', async () => {
    await using server = await startServer(refuse);
    const { socket, until } = await connect(server.port);
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n');
    const response = await until('too large');
    expect(response).toMatch(/^HTTP\/1\.1 413 /);
    expect(response).not.toMatch(/connection: close/i);
    socket.write(Buffer.alloc(1_000_000));
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    expect(await until('ok')).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });

  it('drainRequest closes the connection when the client sends more than 16 MB', async () => {
    await using server = await startServer(refuse);
    const { socket, closed, until } = await connect(server.port);
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000000\r\n\r\n');
    await until('too large');
    let sent = 0;
    const chunk = Buffer.alloc(1 << 20);
    const pump = (): void => {
      do sent += chunk.length;
      while (socket.write(chunk) && sent < 900_000_000);
    };
    socket.on('drain', pump);
    pump();
    await closed;
    expect(sent).toBeLessThan(64 << 20);
  });

  it('drainRequest lets a client that sends more than 16 MB read the response', async () => {
    await using server = await startServer((req, res) => {
      refuse(req, res);
      req.once('pause', () => setImmediate(() => res.socket?.destroyed || passed()));
    });
    let passed = (): void => {};
    const overCap = new Promise<void>((resolve) => {
      passed = resolve;
    });
    const { socket, closed, until } = await connect(server.port);
    socket.pause();
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000000\r\n\r\n');
    socket.write(Buffer.alloc(64 << 20));
    await overCap;
    socket.resume();
    expect(await until('too large')).toMatch(/^HTTP\/1\.1 413 /);
    await closed;
  });

  it('drainRequest closes the connection when the client stops sending', async () => {
    await using server = await startServer(refuse);
    const { socket, closed, until } = await connect(server.port);
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n');
    await until('too large');
    await closed;
  });

  it('drainRequest closes the connection only after a late response was written', async () => {
    await using server = await startServer((req, res) => {
      drainRequest(req, res);
      drainRequest(req, res);
      req.once('pause', () => res.end('late response'));
    });
    const { socket, closed, until } = await connect(server.port);
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000000\r\n\r\n');
    // Not more than the server reads: unread bytes reset the connection, possibly before the response arrives.
    socket.write(Buffer.alloc((16 << 20) + 1));
    await until('late response');
    await closed;
  });

  it.each([
    ['never ends', (stream: http2.ClientHttp2Stream) => stream.write(Buffer.alloc(1000))],
    ['exceeds 16 MB', (stream: http2.ClientHttp2Stream) => stream.end(Buffer.alloc(32 << 20))],
  ])('drainRequest resets only the HTTP/2 stream of a body that %s', async (_how, begin) => {
    const server = http2.createServer((req, res) => refuse(req as never, res as never));
    const { url } = await listen(server);
    const session = http2.connect(url, {
      maxSessionMemory: 100,
    });
    const stream = session.request({ ':method': 'POST' }, { endStream: false });
    begin(stream);
    const [headers] = await once(stream, 'response');
    expect(headers[':status']).toBe(413);
    stream.resume();
    await once(stream, 'close');
    expect(stream.rstCode).toBe(0);
    const next = session.request({ ':method': 'GET' });
    next.setEncoding('utf8');
    expect((await next.toArray()).join('')).toBe('ok');
    session.close();
    server.close();
    await once(server, 'close');
  });

  it('drainRequest keeps an HTTP/2 session usable after many bodies that were refused', async () => {
    const server = http2.createServer((req, res) => refuse(req as never, res as never));
    const { url } = await listen(server);
    const session = http2.connect(url);
    const post = async (bytes: number): Promise<unknown> => {
      const stream = session.request({ ':method': 'POST' });
      let status: unknown;
      stream
        .on('error', () => {})
        .on('response', (headers) => {
          status = headers[':status'];
        });
      stream.resume().end(Buffer.alloc(bytes));
      await once(stream, 'close');
      return status;
    };
    // More bytes in all than the memory limit of a session.
    for (let round = 0; round < 20; round += 1) {
      const statuses = await Promise.all([post(500_000), post(500_000), post(3 << 20), post(20)]);
      expect(statuses).toEqual([413, 413, 413, 413]);
    }
    session.close();
    server.close();
    await once(server, 'close');
  });
});

describe('deferred 100 Continue', () => {
  const onContinue = (server: http.Server): void => {
    server.on('checkContinue', (req, res) => {
      deferContinue(req, res);
      server.emit('request', req, res);
    });
  };
  const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n';

  it('deferContinue sends no 100 and closes the connection when the response comes first', async () => {
    await using server = await startServer(refuse, onContinue);
    const { socket, closed, until } = await connect(server.port);
    socket.write(head);
    const response = await until('too large');
    expect(response).toMatch(/^HTTP\/1\.1 413 /);
    expect(response).toMatch(/connection: close/i);
    await closed;
  });

  it('deferContinue sends 100 once, when a body parser begins to read', async () => {
    await using server = await startServer((req, res) => {
      const chunks: Buffer[] = [];
      req.on('data', (chunk) => chunks.push(chunk));
      req.on('end', () => res.end(`got ${Buffer.concat(chunks)}`));
    }, onContinue);
    const { socket, until } = await connect(server.port);
    for (const body of ['first', 'other']) {
      socket.write(head);
      expect(await until('Continue\r\n\r\n')).toBe('HTTP/1.1 100 Continue\r\n\r\n');
      socket.write(body);
      expect(await until(`got ${body}`)).toMatch(/^HTTP\/1\.1 200 /);
    }
    socket.destroy();
  });
});
