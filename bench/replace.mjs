/**
 * Sends requests at a fixed rate while the schema is replaced, and counts what failed or mixed two schemas. Half of the
 * requests name a document by id, a fifth may be answered from the response cache, and sockets are open meanwhile.
 *
 *   node bench/replace.mjs [--rate=1000] [--seconds=22] [--times=10] [--sockets=50]
 *
 * Exits with 1 if a request failed, if a response has fields of two schemas, or if a socket was not told to reconnect.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import WebSocket from 'ws';
import { given } from './lib/arguments.mjs';

if (process.env.BENCH_ROLE === 'server') await serve();
else await load();

async function serve() {
  const [{ attachSubscriptions, graphqlHTTP }, { buildSchema }, { createServer }] = await Promise.all([
    import('espalier'),
    import('graphql'),
    import('node:http'),
  ]);
  /** Both fields of a schema return its version. */
  const schemaOf = (version) => {
    const schema = buildSchema(
      `type Query { a: Int, b: Int, only${version}: Int } type Subscription { ticks: Int }`,
    );
    for (const field of Object.values(schema.getQueryType().getFields())) field.resolve = async () => version;
    schema.getSubscriptionType().getFields().ticks.subscribe = async function* () {
      yield { ticks: version };
      await new Promise(() => undefined);
    };
    return schema;
  };
  const documents = { from: { both: '{ a b }' } };
  const httpCache = { defaultMaxAge: 1 };
  const handler = graphqlHTTP(schemaOf(0), {
    timeout: 200,
    documents,
    httpCache,
    responseCache: true,
    usage: {},
  });
  const server = createServer(handler);
  attachSubscriptions(server, handler, { path: '/' });
  process.on('disconnect', () => process.exit());
  process.on('message', async (version) => {
    await handler.replace(schemaOf(version));
    process.send({ version, rss: process.memoryUsage.rss() });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  process.send(server.address().port);
}

async function load() {
  const rate = Number(given('rate', 1000));
  const seconds = Number(given('seconds', 22));
  const times = Number(given('times', 10));
  const sockets = Number(given('sockets', 50));
  const server = fork(fileURLToPath(import.meta.url), { env: { ...process.env, BENCH_ROLE: 'server' } });
  const [port] = await once(server, 'message');
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const counts = { sent: 0, answered: 0, failed: 0, mixed: 0, late: 0, told: 0, opened: 0 };
  const versions = new Set();
  let current = 0;

  const bodies = [{ documentId: 'both' }, { query: '{ a b }' }].map((body) => JSON.stringify(body));
  const send = () => {
    const n = counts.sent++;
    const isCacheable = n % 5 === 0;
    const body = isCacheable ? undefined : bodies[n % 2];
    const least = current;
    const options = { agent, host: '127.0.0.1', port, path: isCacheable ? '/?query={a,b}' : '/' };
    const headers = body && { 'content-type': 'application/json', 'content-length': body.length };
    const sent = request({ ...options, method: body ? 'POST' : 'GET', headers }, async (response) => {
      let text = '';
      for await (const part of response) text += part;
      const { data } = JSON.parse(text);
      counts.answered++;
      if (response.statusCode !== 200 || data === undefined) counts.failed++;
      else if (data.a !== data.b) counts.mixed++;
      // A request that was sent after the replacement gets the new schema.
      else if (data.a < least) counts.late++;
      versions.add(data?.a);
    });
    sent.on('error', () => counts.failed++);
    sent.end(body);
  };

  const openSocket = () => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`, 'graphql-transport-ws');
    socket.on('open', () => socket.send('{"type":"connection_init"}'));
    socket.on('message', (data) => {
      if (`${data}`.includes('connection_ack')) {
        const payload = { query: 'subscription { ticks }' };
        socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload }));
      } else counts.opened++;
    });
    socket.on('close', (code) => {
      if (code !== 1012) return;
      counts.told++;
      openSocket();
    });
  };
  for (let i = 0; i < sockets; i++) openSocket();

  const started = performance.now();
  const sending = setInterval(() => {
    const due = ((performance.now() - started) / 1000) * rate;
    while (counts.sent < due) send();
  }, 5);
  const memory = [];
  for (let version = 1; version <= times; version++) {
    await new Promise((resolve) => setTimeout(resolve, (seconds * 1000) / (times + 1)));
    server.send(version);
    const [{ rss }] = await once(server, 'message');
    current = version;
    memory.push(Math.round(rss / 2 ** 20));
  }
  await new Promise((resolve) => setTimeout(resolve, (seconds * 1000) / (times + 1)));
  clearInterval(sending);
  while (counts.answered + counts.failed < counts.sent)
    await new Promise((resolve) => setTimeout(resolve, 50));
  console.log({ ...counts, perSecond: Math.round(counts.sent / seconds), versions: versions.size });
  console.log(`memory after each replacement in MiB: ${memory.join(' ')}`);
  const isRight = counts.failed + counts.mixed + counts.late === 0 && versions.size === times + 1;
  // All subscriptions but those of the last schema.
  const wereTold = counts.told === counts.opened - sockets;
  process.exit(isRight && wereTold ? 0 : 1);
}
