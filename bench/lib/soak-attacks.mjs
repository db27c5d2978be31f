import { once } from 'node:events';
import { connect } from 'node:net';
import { WebSocket } from 'ws';
import { mutate, random, randomDocument, render, seedRandom } from './document-genes.mjs';
import { ADDRESS, bomb, form, GET, json, POST, pick, sleep, withHeaders } from './soak-bytes.mjs';
import { FEATURE_ACTIONS } from './soak-feature-attacks.mjs';

/** Actions of malicious clients. Each gets a function that opens a connection and resolves when it is over. */
const ACTIONS = {
  document: async ({ send }) => {
    let gene = randomDocument();
    for (let count = 0; count < 3; count++) gene = mutate(gene);
    await send(json({ query: render(gene) }), 'response');
  },
  batch: ({ send }) =>
    send(
      json(Array.from({ length: 10 }, (_, i) => ({ query: `{ lines(count: 3000) a${i}: hello }` }))),
      'response',
    ),
  'bad json': ({ send }) =>
    send(
      json(pick(['{', '[[[['.repeat(9000), '{"query":1}', '{"query":"{ hello }","variables":[]}', '\u0000'])),
      'response',
    ),
  'many values': ({ send }) =>
    send(json(`{"query":"{ hello }","variables":{"v":[${'1,'.repeat(300_000)}1]}}`), 'response'),
  'gzip bomb': ({ send }) =>
    send(withHeaders(POST('application/json', bomb), 'Content-Encoding: gzip\r\n'), 'response'),
  'slow head': ({ send }) => send('GET /static/small.css HT', pick([300, 3000, 9000])),
  'slow body': ({ send }) => send(json('{"query":"{ hel', 200_000), pick([300, 3000, 9000])),
  'body of another length': ({ send }) => send(json({ query: '{ hello }' }, 5000), pick([100, 6000])),
  'abort of an execution': ({ send }) =>
    send(json({ query: `{ slow(of: ${Math.floor(random() * 1e6)}) lines(count: 1000) }` }), 50),
  'pipelined operations': ({ send }) =>
    send(
      Buffer.concat(Array.from({ length: 50 }, () => json({ query: '{ slow lines(count: 500) }' }))),
      pick([20, 400]),
    ),
  'pipelined files': ({ send }) => send(GET('/static/big.bin').repeat(100), pick([20, 200])),
  'slow reader of a file': ({ send }) => send(GET('/static/big.bin'), pick([500, 4000]), { read: false }),
  'slow reader of results': ({ send }) =>
    send(Buffer.concat(Array.from({ length: 20 }, () => json({ query: '{ lines(count: 20000) }' }))), 2000, {
      read: false,
    }),
  ranges: ({ send }) =>
    send(
      GET(
        '/static/big.bin',
        `Range: bytes=${Array.from({ length: 200 }, (_, i) => `${i}-${i + 2}`).join()}\r\n`,
      ),
      'response',
    ),
  paths: ({ send }) =>
    send(
      GET(
        `/static/${pick(['..%2f..%2fetc/passwd', '%00', '....//', '.env', 'a'.repeat(5000), '%zz', '//x', `${random()}`])}`,
      ),
      'response',
    ),
  'cross-site get': ({ send }) =>
    send(
      GET(
        '/graphql?query=mutation{unread}',
        'Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nCookie: a=b\r\n',
      ),
      'response',
    ),
  upload: ({ send }) =>
    send(POST('multipart/form-data; boundary=x', form(pick([10, 200_000, 3_000_000]))), 'response'),
  'upload without end': ({ send }) =>
    send(
      POST('multipart/form-data; boundary=x', form(600_000, { close: false }), 5e6),
      pick([50, 2000, 9000]),
    ),
  'upload too large': ({ send }) =>
    send(POST('multipart/form-data; boundary=x', form(5_000_000)), 'response'),
  'malformed upload': ({ send }) =>
    send(
      POST(
        'multipart/form-data; boundary=x',
        pick([
          '',
          '--x--',
          form(1000).replaceAll('name=', 'nome='),
          form(1000).replace('"0":', '"0":["variables.__proto__.x"],"1":'),
        ]),
      ),
      'response',
    ),
  'pipelined uploads': ({ send }) =>
    send(
      Buffer.concat([
        json({ query: '{ slow }' }),
        ...Array.from({ length: 4 }, () => POST('multipart/form-data; boundary=x', form(400_000))),
      ]),
      pick([20, 150, 1000]),
    ),
  'socket of documents': ({ socket }) =>
    socket(async (ws) => {
      for (let id = 0; id < 10; id++) ws.send(subscribe(id, render(mutate(randomDocument()))));
      await sleep(500);
    }),
  'socket that reads nothing': ({ socket }) =>
    socket(async (ws) => {
      for (let id = 0; id < 50; id++) ws.send(subscribe(id, 'subscription { bulk }'));
      ws._socket.pause();
      await sleep(pick([1000, 8000]));
    }),
  'socket with bad messages': ({ socket }) =>
    socket(async (ws) => {
      ws.send(
        pick([
          '{',
          '{"type":"nope"}',
          '{"type":"connection_init"}',
          '[]',
          'x'.repeat(200_000),
          '{"id":"1","type":"subscribe","payload":{}}',
        ]),
      );
      await sleep(200);
    }),
  'socket that is reset': ({ socket }) =>
    socket(async (ws) => {
      for (let id = 0; id < 20; id++)
        ws.send(subscribe(id, pick(['subscription { tick }', 'subscription { shared }', '{ slow }'])));
      await sleep(pick([5, 300]));
      ws._socket.resetAndDestroy();
    }),
  'bad upgrade': ({ send }) =>
    send(
      GET(
        '/graphql',
        `Connection: Upgrade\r\nUpgrade: ${pick(['websocket', 'h2c', 'x'])}\r\nSec-WebSocket-Version: ${pick(['13', '8', 'x'])}\r\n`,
      ),
      300,
    ),
  ...FEATURE_ACTIONS,
};

const subscribe = (id, query) => JSON.stringify({ id: String(id), type: 'subscribe', payload: { query } });

/** Starts attacks at a fixed rate. Returns the function that stops them and returns how many of each there were. */
export function startAttacks(port, { seed }) {
  seedRandom(seed);
  const counts = {};
  const tasks = new Set();
  const tools = {
    send: (bytes, until, options) => exchange(port, bytes, until, options),
    receive: (bytes) => receive(port, bytes),
    socket: (use) => withSocket(port, use),
  };
  const timer = setInterval(() => {
    if (tasks.size > 200) return;
    const name = pick(Object.keys(ACTIONS));
    counts[name] = (counts[name] ?? 0) + 1;
    const task = ACTIONS[name](tools)
      .catch(() => undefined)
      .finally(() => tasks.delete(task));
    tasks.add(task);
  }, 25);
  return async () => {
    clearInterval(timer);
    await Promise.all(tasks);
    return counts;
  };
}

/** Writes bytes, waits for a response or for a time, and resets the connection. */
async function exchange(port, bytes, until, { read = true } = {}) {
  const socket = connect({ port, host: '127.0.0.1', localAddress: ADDRESS });
  socket.on('error', () => undefined);
  const closed = once(socket, 'close');
  if (!read) socket.pause();
  socket.write(bytes);
  await Promise.race([until === 'response' ? once(socket, 'data') : sleep(until), closed, sleep(10_000)]);
  if (read) socket.resume();
  if (random() < 0.5) socket.resetAndDestroy();
  else socket.destroy();
}

/** Sends a request and returns the text of its response. */
async function receive(port, bytes) {
  const socket = connect({ port, host: '127.0.0.1', localAddress: ADDRESS });
  socket.on('error', () => undefined);
  socket.write(bytes);
  const timer = setTimeout(() => socket.destroy(), 5000);
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
    // The responses that are read here are short, and arrive in one piece.
    socket.destroy();
  });
  await once(socket, 'close');
  clearTimeout(timer);
  return text;
}

async function withSocket(port, use) {
  const ws = new WebSocket(
    `ws://127.0.0.1:${port}/graphql`,
    pick(['graphql-transport-ws', 'graphql-transport-ws', 'graphql-ws']),
    { localAddress: ADDRESS },
  );
  ws.on('error', () => undefined);
  await once(ws, 'open');
  if (random() < 0.9) {
    ws.send('{"type":"connection_init"}');
    await once(ws, 'message');
  }
  try {
    await use(ws);
  } finally {
    ws.terminate();
  }
}
