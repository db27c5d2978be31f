/** @tags once slow */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type RequestListener, ServerResponse } from 'node:http';
import * as http2 from 'node:http2';
import * as https from 'node:https';
import { connect, type Socket } from 'node:net';
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { ExecuteEvent } from '../../src/diagnostics/events.ts';
import { writeReplyInPlace } from '../../src/http/reply.ts';
import { requestHttp1, requestHttps, requestSecureHttp2, serving, tls } from '../exchange.ts';
import { eachExpress } from '../express.ts';
import { post, run, wire } from './server.ts';

const schema = buildSchema('type Query { texts(of: Int!, count: Int!): [String!]! }');
const QUERY = 'query ($of: Int!, $count: Int!) { texts(of: $of, count: $count) }';
const textsOf = ({ of, count }: { of: number; count: number }): string[] =>
  Array.from({ length: count }, (_, index) => `request ${of}, text ${index} `.repeat(20));
const handler = graphqlHTTP(schema, { rootValue: { texts: textsOf }, batching: true, graphiql: false });

const variablesOf = (of: number) => ({ of, count: 50 + ((of * 37) % 1200) });
const bodyOf = (of: number): string => JSON.stringify({ query: QUERY, variables: variablesOf(of) });
const responseOf = (of: number): string => JSON.stringify({ data: { texts: textsOf(variablesOf(of)) } });

/** The bodies that arrive on a connection, in order. */
async function* bodies(socket: Socket): AsyncGenerator<string> {
  let received = Buffer.alloc(0);
  for await (const chunk of socket) {
    received = Buffer.concat([received, chunk]);
    for (;;) {
      const head = received.indexOf('\r\n\r\n') + 4;
      const length = Number(/content-length: (\d+)/i.exec(received.toString('latin1', 0, head))?.[1]);
      if (head < 4 || received.length < head + length) break;
      yield received.toString('utf8', head, head + length);
      received = received.subarray(head + length);
    }
  }
}

const open = async (port: number): Promise<Socket> => {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
};

/** Closes all connections, also after a failed expectation. */
async function served(
  listener: RequestListener,
  sendRequest: (port: number) => Promise<unknown>,
): Promise<void> {
  const { port } = await run(listener);
  await sendRequest(port);
}

/** The bodies that are not the responses to requests 0, 1, 2 … */
const wrong = (all: readonly (string | Buffer)[]): number[] =>
  [...all.keys()].filter((of) => String(all[of]) !== responseOf(of));

/** Sends requests one after the other and compares the responses. */
async function requestInOrder(port: number, ids: readonly number[]): Promise<void> {
  const socket = await open(port);
  const responses = bodies(socket);
  for (const id of ids) {
    socket.write(post(bodyOf(id)));
    const { value } = await responses.next();
    expect(value === responseOf(id)).toBe(true);
  }
  socket.destroy();
}

/** Sends all requests and reads no response until `read` is called. */
async function requestBeforeReading(
  port: number,
  ids: readonly number[],
  others: Promise<unknown>,
): Promise<void> {
  const socket = await open(port);
  socket.pause();
  for (const id of ids) socket.write(post(bodyOf(id)));
  await others;
  const responses = bodies(socket);
  for (const id of ids) expect((await responses.next()).value === responseOf(id)).toBe(true);
  socket.destroy();
}

/** Disconnects in the middle of a response. */
async function requestAndDisconnect(port: number, id: number): Promise<void> {
  const socket = await open(port);
  for (let time = 0; time < 8; time++) socket.write(post(bodyOf(id)));
  await once(socket, 'data');
  socket.destroy();
}

const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);

describe('long responses whose buffers are reused', () => {
  it('long responses contain no byte of each other, with slow and disconnecting clients', async () => {
    const busy = async (port: number): Promise<void> => {
      const quick = range(0, 8).map((client) => requestInOrder(port, range(client * 100, 25)));
      const leaving = range(0, 12).map((client) => requestAndDisconnect(port, 5000 + client));
      await Promise.all([...quick, ...leaving]);
    };
    await served(handler, async (port) => {
      const first = busy(port);
      const slow = range(0, 4).map((client) =>
        requestBeforeReading(port, range(1000 + client * 100, 48), first),
      );
      await Promise.all([first, ...slow]);
      await busy(port);
    });
  });

  it('long responses of batches contain no byte of each other', async () => {
    const sendRequest = async (port: number, client: number): Promise<void> => {
      const ids = range(client * 10, 5);
      const body = `[${ids.map(bodyOf).join(',')}]`;
      const response = await requestHttp1(port, {
        method: 'POST',
        path: '/',
        headers: { 'content-type': 'application/json' },
        body,
      });
      expect(response.body === `[${ids.map(responseOf).join(',')}]`).toBe(true);
    };
    await served(handler, async (port) => {
      for (let round = 0; round < 3; round++)
        await Promise.all(range(0, 6).map((client) => sendRequest(port, client)));
    });
  });

  it('long responses do not change for subscribers of the execute channel', async () => {
    const delivered: ExecuteEvent[] = [];
    const listener = (event: unknown): void => void delivered.push(event as ExecuteEvent);
    await served(handler, async (port) => {
      subscribe('espalier:graphql:execute', listener);
      await requestInOrder(port, range(0, 20));
      unsubscribe('espalier:graphql:execute', listener);
      await requestInOrder(port, range(100, 20));
    });
    expect(wrong(delivered.map(({ outcome }) => outcome.body))).toEqual([]);
    expect(delivered).toHaveLength(20);
    expect(delivered.map(({ outcome }) => outcome.release)).toEqual(delivered.map(() => undefined));
  });
});

eachExpress((express) => {
  it('long responses leave their bytes to middleware that wraps write and end', async () => {
    // With graphql-js the response is text.
    const kept: (Buffer | string)[] = [];
    const app = express();
    app.use((_req, res, next) => {
      for (const method of ['write', 'end'] as const) {
        const original = res[method] as (...args: unknown[]) => unknown;
        const wrapped = (...args: unknown[]): unknown => {
          if (Buffer.isBuffer(args[0]) || typeof args[0] === 'string') kept.push(args[0]);
          return original.apply(res, args);
        };
        Object.assign(res, { [method]: wrapped });
      }
      next();
    });
    app.use('/graphql', handler);
    await served(app as unknown as RequestListener, (port) => requestInOrder(port, range(0, 20)));
    expect(wrong(kept)).toEqual([]);
    expect(kept).toHaveLength(20);
  });
});

const LONG = Buffer.alloc(32 * 1024 * 1024, 'x');

/** A server whose response body can be released, and the releases so far. */
function releasable(body: Buffer = LONG) {
  const replies: { res: ServerResponse; released: number }[] = [];
  const listener: RequestListener = (req, res) => {
    const reply = { res, released: 0 };
    replies.push(reply);
    const release = (): void => void reply.released++;
    writeReplyInPlace(req, res, { status: 200, headers: {}, body, release });
  };
  return { replies, listener, released: () => replies.map((reply) => reply.released) };
}

const REQUEST = 'GET / HTTP/1.1\r\nhost: localhost\r\n\r\n';

describe('the bytes of a reply', () => {
  /** Requests a reply without reading it; calls `go` while the reply is being sent. */
  async function underWay(go: (client: Socket, res: ServerResponse) => Promise<unknown>): Promise<number[]> {
    const { listener, replies, released } = releasable();
    await served(listener, async (port) => {
      const { socket, write } = wire(port);
      socket.pause();
      write(REQUEST);
      while (replies.length === 0) await new Promise(setImmediate);
      expect(released()).toEqual([0]);
      await go(socket, (replies[0] as { res: ServerResponse }).res);
    });
    return released();
  }

  it('the buffer of a reply is released once, after it was sent', async () => {
    const released = await underWay((client, res) => {
      const finished = once(res, 'finish');
      client.resume();
      return finished;
    });
    expect(released).toEqual([1]);
  });

  it('the buffer of a reply is not released if the client disconnects first', async () => {
    const released = await underWay((client, res) => {
      const closed = once(res, 'close');
      client.destroy();
      return closed;
    });
    expect(released).toEqual([0]);
  });

  it('the buffer of a reply is not released if the server destroys the response', async () => {
    const released = await underWay((_client, res) => {
      const closed = once(res, 'close');
      res.destroy();
      return closed;
    });
    expect(released).toEqual([0]);
  });

  it('the buffer of a reply is not released with HEAD, TLS and HTTP/2', async () => {
    const short = Buffer.alloc(100_000, 'x');
    const { listener, released } = releasable(short);
    const requestOptions = { path: '/' };
    await serving(createServer(listener), (port) =>
      requestHttp1(port, { ...requestOptions, method: 'HEAD' }),
    );
    await serving(https.createServer(tls, listener), (port) => requestHttps(port, requestOptions));
    const secure = http2.createSecureServer(
      tls,
      listener as unknown as Parameters<typeof http2.createSecureServer>[1],
    );
    await serving(secure, (port) => requestSecureHttp2(port, requestOptions));
    expect(released()).toEqual([0, 0, 0]);
    await serving(createServer(listener), (port) => requestHttp1(port, requestOptions));
    expect(released()).toEqual([0, 0, 0, 1]);
  });

  it('the buffer of a reply is not released if methods of responses or of the socket are replaced', async () => {
    const { listener, released } = releasable(Buffer.alloc(100_000, 'x'));
    const { write } = ServerResponse.prototype;
    const forwarded = function (this: ServerResponse, ...args: Parameters<typeof write>) {
      return write.apply(this, args);
    };
    ServerResponse.prototype.write = forwarded as typeof write;
    try {
      await serving(createServer(listener), (port) => requestHttp1(port, { path: '/' }));
    } finally {
      ServerResponse.prototype.write = write;
    }
    const own: RequestListener = (req, res) => {
      const socket = req.socket;
      socket.write = socket.write.bind(socket) as typeof socket.write;
      listener(req, res);
    };
    await serving(createServer(own), (port) => requestHttp1(port, { path: '/' }));
    expect(released()).toEqual([0, 0]);
  });
});
