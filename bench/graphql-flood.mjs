/**
 * Sends new documents on many connections at the same time, and measures how long the event loop is blocked and how much
 * memory the server uses meanwhile.
 *
 *   node bench/graphql-flood.mjs [--connections=300] [--each=4] [--bytes=5000] [--transport=websocket] [--engine=graphql-js] [--most=50]
 *
 * Exits with 1 if an iteration of the event loop took longer than `most` milliseconds of CPU time.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { given } from './lib/arguments.mjs';
import { rootValue, SCHEMA, watchLoop } from './lib/expensive-documents.mjs';

if (process.env.BENCH_ROLE === 'server') await serve();
else await flood();

async function serve() {
  const [{ attachSubscriptions, graphqlHTTP }, { buildSchema }, { createServer }] = await Promise.all([
    import('espalier'),
    import('graphql'),
    import('node:http'),
  ]);
  const options = JSON.parse(process.env.BENCH_OPTIONS);
  const handler = graphqlHTTP(buildSchema(SCHEMA), { rootValue, onError: false, ...options });
  const server = createServer(handler);
  attachSubscriptions(server, handler);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  let watch;
  let mostRss = 0;
  const sampling = setInterval(() => {
    mostRss = Math.max(mostRss, process.memoryUsage.rss());
  }, 10);
  process.on('disconnect', () => process.exit());
  process.on('message', (ask) => {
    if (ask === 'begin') {
      global.gc();
      watch = watchLoop();
      delay.reset();
      delay.enable();
      mostRss = process.memoryUsage.rss();
      process.send({ rss: mostRss });
      return;
    }
    const { cpu, clock } = watch.stop();
    delay.disable();
    clearInterval(sampling);
    const during = { mostRss, cpu, clock, delayMax: delay.max / 1e6, delay99: delay.percentile(99) / 1e6 };
    global.gc();
    process.send({ ...during, heapAfter: process.memoryUsage().heapUsed });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  process.send(server.address().port);
}

async function flood() {
  const connections = Number(given('connections', 300));
  const each = Number(given('each', 4));
  const bytes = Number(given('bytes', 5000));
  const most = Number(given('most', 50));
  const child = fork(fileURLToPath(import.meta.url), {
    env: {
      ...process.env,
      NODE_ENV: given('env', 'production'),
      BENCH_ROLE: 'server',
      BENCH_OPTIONS: JSON.stringify(given('engine') === undefined ? {} : { engine: given('engine') }),
    },
    execArgv: ['--expose-gc', ...process.execArgv],
  });
  const message = async () => (await once(child, 'message'))[0];
  const port = await message();
  const open = given('transport') === 'websocket' ? openSocket : openHttp;
  const clients = await Promise.all(Array.from({ length: connections }, () => open(port)));
  for (const client of clients.slice(0, 20)) await client.send(documentOf(bytes, 'warm'));
  child.send('begin');
  const { rss } = await message();
  const started = performance.now();
  const texts = clients.map((_, c) =>
    Array.from({ length: each }, (_x, i) => documentOf(bytes, `${c}x${i}`)),
  );
  await Promise.all(
    clients.map(async (client, c) => {
      for (const text of texts[c]) await client.send(text);
    }),
  );
  const seconds = (performance.now() - started) / 1000;
  child.send('end');
  const seen = await message();
  child.kill();
  for (const client of clients) client.close();
  const mebibytes = (count) => `${(count / 2 ** 20).toFixed(0)} MiB`;
  console.log(
    `${connections} × ${each} documents of ${bytes} characters (${given('transport', 'http')}, ${given('engine', 'compiled')}) in ${seconds.toFixed(1)} s: longest iteration ${seen.cpu.toFixed(1)} ms CPU, ${seen.clock.toFixed(1)} ms wall; event loop delay max ${seen.delayMax.toFixed(1)}, p99 ${seen.delay99.toFixed(1)} ms; RSS ${mebibytes(rss)} -> ${mebibytes(seen.mostRss)}, heap after ${mebibytes(seen.heapAfter)}`,
  );
  process.exitCode = seen.cpu > most ? 1 : 0;
}

/** A valid document of about this many characters that no cache has seen. It has at most 100 root fields. */
function documentOf(bytes, name) {
  const line = (index) => ` f${index}x${name}: a(x: ${index}) { hello b { id hello } }`;
  const wide = (index) => ` g${index}x${name}: hello`;
  let text = `query q${name} {`;
  let index = 0;
  for (; text.length < bytes && index < 90; index++) text += line(index);
  if (text.length < bytes) {
    text += ' a {';
    for (; text.length < bytes; index++) text += wide(index);
    text += ' }';
  }
  return `${text} }`;
}

function openHttp(port) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    close: () => agent.destroy(),
    async send(query) {
      const body = JSON.stringify({ query });
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      const req = request({ port, host: '127.0.0.1', path: '/graphql', method: 'POST', agent, headers }).end(
        body,
      );
      const [res] = await once(req, 'response');
      if (res.statusCode >= 500) throw new Error(`status ${res.statusCode}`);
      res.resume();
      await once(res, 'end');
    },
  };
}

async function openSocket(port) {
  const { WebSocket } = await import('ws');
  const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws');
  await once(socket, 'open');
  const next = async () => JSON.parse((await once(socket, 'message'))[0]);
  socket.send('{"type":"connection_init"}');
  await next();
  let id = 0;
  return {
    close: () => socket.terminate(),
    async send(query) {
      id += 1;
      socket.send(JSON.stringify({ id: String(id), type: 'subscribe', payload: { query } }));
      let received = await next();
      while (received.type === 'next') received = await next();
    },
  };
}
