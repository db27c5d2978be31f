/** @tags node graphql */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { deferContinue } from '../../src/http/body.ts';
import { atEnd, listen } from '../kit.ts';
import { post, type Running, run, type Wire, wire } from './server.ts';

const schema = buildSchema('type Query { hello(name: String): String }');
const rootValue = { hello: ({ name }: { name?: string }) => `Hello ${name ?? 'world'}` };
const HELLO = '{"query":"{ hello }"}';
const errors: unknown[] = [];
const handler = graphqlHTTP(schema, { rootValue });
const response = (req: IncomingMessage, res: ServerResponse): void =>
  handler(req, res, (error) => errors.push(error));

const serve = async (listener: RequestListener): Promise<Running & { client: Wire }> => {
  const running = await run(listener);
  const client = wire(running.port);
  atEnd(() => client.socket.destroy());
  return { ...running, client };
};
afterEach(() => expect(errors).toEqual([]));

const closing = (req: IncomingMessage): Promise<void> => new Promise((resolve) => req.once('close', resolve));

/** The ways in which a body arrives: with its head, after it, in pieces, and in chunks. */
const ways: [string, (client: Wire) => Promise<void>][] = [
  ['with its head', async (client) => client.write(post(HELLO))],
  [
    'after its head',
    async (client) => {
      const message = post(HELLO);
      client.write(message.subarray(0, -HELLO.length));
      await new Promise((resolve) => setImmediate(resolve));
      client.write(HELLO);
    },
  ],
  [
    'in pieces',
    async (client) => {
      for (const byte of post(HELLO)) {
        client.write(Buffer.from([byte]));
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  ],
  [
    'in chunks',
    async (client) => {
      const head = post('', { 'transfer-encoding': 'chunked' }).toString();
      const half = HELLO.length >> 1;
      const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
      client.write(head.replace('content-length: 0\r\n', ''));
      client.write(`${chunk(HELLO.slice(0, half))}${chunk(HELLO.slice(half))}0\r\n\r\n`);
    },
  ],
];

describe.each(ways)('a body that arrives %s', (_way, send) => {
  it('graphqlHTTP reads the body once and completely', async () => {
    const { client } = await serve(response);
    for (let round = 0; round < 3; round += 1) {
      client.forget();
      await send(client);
      await client.until(/HTTP\/1.1 200[\s\S]*Hello world"\}\}$/);
    }
  });

  it('graphqlHTTP leaves the end event of the body to earlier listeners', async () => {
    const received: string[] = [];
    const { client } = await serve((req, res) => {
      for (const event of ['end', 'close']) req.once(event, () => received.push(event));
      response(req, res);
    });
    await send(client);
    await client.until(/Hello world/);
    client.forget();
    // The next response on the connection comes after the end of the previous request.
    await send(client);
    await client.until(/Hello world/);
    expect(received.slice(0, 2)).toEqual(['end', 'close']);
  });

  it('graphqlHTTP leaves the data of the body to earlier listeners', async () => {
    let bytes = '';
    const { client } = await serve((req, res) => {
      req.on('data', (chunk) => {
        bytes += String(chunk);
      });
      response(req, res);
    });
    await send(client);
    await client.until(/Hello world/);
    expect(bytes).toBe(HELLO);
  });

  it('graphqlHTTP leaves the data of the body to listeners that are added after its call', async () => {
    let bytes = '';
    const { client } = await serve((req, res) => {
      response(req, res);
      req.on('data', (chunk) => {
        bytes += String(chunk);
      });
    });
    await send(client);
    await client.until(/Hello world/);
    expect(bytes).toBe(HELLO);
  });

  it('graphqlHTTP reads the body of a request that earlier middleware has paused', async () => {
    const { client } = await serve((req, res) => {
      req.pause();
      setTimeout(response, 5, req, res);
    });
    client.write(post(HELLO));
    expect(await client.until(/world/)).toContain('200 OK');
  });

  it('graphqlHTTP reads a body as text after setEncoding', async () => {
    const { client } = await serve((req, res) => {
      req.setEncoding('utf8');
      response(req, res);
    });
    await send(client);
    await client.until(/Hello world/);
  });

  it('graphqlHTTP reads a body that arrived before its call', async () => {
    const { client } = await serve((req, res) => {
      req.once('readable', () => setImmediate(() => response(req, res)));
    });
    await send(client);
    await client.until(/Hello world/);
  });

  it('graphqlHTTP reads a body that arrived while asynchronous middleware ran', async () => {
    const { client } = await serve((req, res) => {
      const wait = (): unknown =>
        req.readableLength === HELLO.length ? response(req, res) : setImmediate(wait);
      wait();
    });
    await send(client);
    await client.until(/HTTP\/1.1 200[\s\S]*Hello world/);
  });

  it('graphqlHTTP sends 400 for a body that other code has consumed', async () => {
    const { client } = await serve((req, res) => {
      req.resume().once('end', () => response(req, res));
    });
    await send(client);
    await client.until(/HTTP\/1.1 400[\s\S]*BODY_CONSUMED/);
  });

  it('graphqlHTTP ignores a request that was destroyed before its call', async () => {
    const { client, server } = await serve((req, res) => {
      req.destroy();
      response(req, res);
    });
    const requested = once(server, 'request');
    const closed = client.closed();
    await send(client);
    await requested;
    expect(await closed).toBe('');
  });
});

describe('a wrong Content-Length', () => {
  it('graphqlHTTP responds to the bytes of a Content-Length that is too small, and Node refuses the rest', async () => {
    const { client } = await serve(response);
    client.write(post(`${HELLO}`, { 'content-length': String(HELLO.length - 1) }));
    expect(await client.closed()).toMatch(/^HTTP\/1.1 400[\s\S]*BAD_JSON[\s\S]*HTTP\/1.1 400 Bad Request/);
  });

  it('graphqlHTTP waits for the bytes of a Content-Length that is too large until the connection closes', async () => {
    const { client, server } = await serve(response);
    const requested = once(server, 'request');
    client.write(post(HELLO, { 'content-length': String(HELLO.length + 1) }));
    const [req] = await requested;
    const clientClosed = closing(req);
    const closed = client.closed();
    client.socket.end();
    await clientClosed;
    expect(await closed).not.toMatch(/HTTP\/1.1 200/);
  });

  it.each(['-1', '1e2', '0x10', 'x', '5, 6'])(
    'Node refuses the Content-Length %s before graphqlHTTP is called',
    async (length) => {
      let requested = 0;
      const { client } = await serve(() => {
        requested += 1;
      });
      client.write(post(HELLO, { 'content-length': length }));
      expect(await client.closed()).toMatch(/^HTTP\/1.1 400/);
      expect(requested).toBe(0);
    },
  );
});

it('graphqlHTTP ignores a body that is cut off halfway', async () => {
  const { client, server, port } = await serve(response);
  const requested = once(server, 'request');
  client.write(post(HELLO).subarray(0, -4));
  const [req] = await requested;
  const clientClosed = closing(req);
  client.socket.resetAndDestroy();
  await clientClosed;
  const next = wire(port);
  next.write(post(HELLO));
  await next.until(/Hello world/);
  next.socket.destroy();
});

describe('a client that waits for 100 Continue', () => {
  const head = (headers = {}): Buffer =>
    post(HELLO, { expect: '100-continue', ...headers }).subarray(0, -HELLO.length);

  it('a client that waits for 100 Continue gets it and the response', async () => {
    const { client } = await serve(response);
    client.write(head());
    await client.until(/HTTP\/1.1 100 Continue/);
    client.write(HELLO);
    await client.until(/HTTP\/1.1 200[\s\S]*Hello world/);
  });

  it('100 Continue is sent when the body is read, and not for a request that is refused by its head', async () => {
    const server = createServer(response);
    server.on('checkContinue', (req, res) => {
      deferContinue(req, res);
      response(req, res);
    });
    const { port } = await listen(server);
    const client = wire(port);
    client.write(head());
    await client.until(/HTTP\/1.1 100 Continue/);
    client.write(HELLO);
    await client.until(/HTTP\/1.1 200[\s\S]*Hello world/);
    const refused = wire(port);
    refused.write(head({ 'content-type': 'text/plain' }));
    expect(await refused.closed()).toMatch(/^HTTP\/1.1 415/);
    client.socket.destroy();
  });
});
