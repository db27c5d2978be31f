/**
 * Searches for documents under 100 kB that block the event loop of a server with default limits: random documents, then
 * mutations of those that blocked it longest. The longest are measured again in new processes; `--save` keeps the worst of them,
 * and `--document` measures only that file.
 *
 *   node bench/graphql-search.mjs [--seconds=N] [--seed=N] [--most=milliseconds] [--engine=graphql-js] [--transport=websocket]
 *   [--env=development] [--save=file] [--document=file]
 *
 * For graphql 17: `node --import ./test/engine/graphql17.mjs bench/graphql-search.mjs` (Node 22 or newer). Exits with 1 if the
 * shortest time of a document in several processes is over the limit.
 */
import { fork } from 'node:child_process';
import { on, once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { given } from './lib/arguments.mjs';
import { mutate, random, randomDocument, render, seedRandom } from './lib/document-genes.mjs';
import { rootValue, SCHEMA, watchLoop } from './lib/expensive-documents.mjs';

if (process.env.BENCH_ROLE === 'server') await serve();
else if (given('document') === undefined) await search();
else await confirm([{ query: readFileSync(given('document'), 'utf8') }], Number(given('most', 50)));

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
  let watch = watchLoop();
  process.on('disconnect', () => process.exit());
  process.on('message', async () => {
    // Work that continues after the response is part of the measurement.
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve, 1));
    process.send(watch.stop());
    watch = watchLoop();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  process.send(server.address().port);
}

async function start() {
  const options = given('engine') === undefined ? {} : { engine: given('engine') };
  const child = fork(fileURLToPath(import.meta.url), {
    env: {
      ...process.env,
      NODE_ENV: given('env', 'production'),
      BENCH_ROLE: 'server',
      BENCH_OPTIONS: JSON.stringify(options),
    },
  });
  const message = () => new Promise((resolve) => child.once('message', resolve));
  const send = await (given('transport') === 'websocket' ? overWebSocket : overHttp)(await message());
  let count = 0;
  return {
    /** The longest iteration of the event loop for one document, in milliseconds. */
    async measure(query) {
      await send(`${query}#${count++}`);
      child.send('report');
      return (await message()).cpu;
    },
    stop: () => child.kill(),
  };
}

function overHttp(port) {
  return async (query) => {
    const response = await fetch(`http://127.0.0.1:${port}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/graphql-response+json' },
      body: JSON.stringify({ query }),
    });
    await response.arrayBuffer();
    if (response.status >= 500) throw new Error(`status ${response.status} for ${query}`);
  };
}

async function overWebSocket(port) {
  const { WebSocket } = await import('ws');
  const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws');
  // Several messages may arrive in one packet, so they are not awaited one by one.
  const messages = on(socket, 'message', { close: ['close'] });
  const next = async () => {
    const { done, value } = await messages.next();
    if (done) throw new Error('the server has closed the socket');
    return JSON.parse(value[0]);
  };
  await once(socket, 'open');
  socket.send('{"type":"connection_init"}');
  await next();
  let id = 0;
  return async (query) => {
    id += 1;
    socket.send(JSON.stringify({ id: String(id), type: 'subscribe', payload: { query } }));
    let received = await next();
    while (received.type === 'next') received = await next();
  };
}

async function search() {
  const seconds = Number(given('seconds', 120));
  const most = Number(given('most', 50));
  const seed = Number(given('seed', Date.now() % 1e6));
  seedRandom(seed);
  const until = Date.now() + seconds * 1000;
  let server = await start();
  let tried = 0;
  /** The documents that blocked longest, longest first. */
  let best = [];
  while (Date.now() < until) {
    // A third of the documents is new; the others are mutations of the best.
    const gene =
      best.length < 20 || random() < 0.33
        ? randomDocument()
        : mutate(best[Math.floor(random() ** 2 * best.length)].gene);
    const query = render(gene);
    if (query.length >= 99_000) continue;
    const time = await server.measure(query);
    tried += 1;
    best = [...best, { gene, time, query }].sort((a, b) => b.time - a.time).slice(0, 40);
    // A new process, so that memory of earlier documents does not count.
    if (tried % 400 === 0) {
      server.stop();
      server = await start();
    }
  }
  server.stop();
  console.log(
    `seed ${seed}: ${tried} documents, longest ${best
      .slice(0, 5)
      .map(({ time }) => time.toFixed(1))
      .join(', ')} ms`,
  );
  await confirm(best.slice(0, 8), most);
}

/** Measures documents in new processes, cold and warm, and prints the shortest times. */
async function confirm(found, most) {
  let worst = 0;
  for (const { query } of found) {
    const [cold, warm] = [[], []];
    for (let round = 0; round < 3; round++) {
      const server = await start();
      cold.push(await server.measure(query));
      for (let index = 0; index < 5; index++) await server.measure(query);
      warm.push(await server.measure(query));
      server.stop();
    }
    const time = Math.max(Math.min(...cold), Math.min(...warm));
    console.log(
      `${time > most ? '✗' : ' '} cold ${Math.min(...cold).toFixed(1)} ms, warm ${Math.min(...warm).toFixed(1)} ms, ${query.length} characters: ${query.slice(0, 100).replaceAll('\n', ' ')}`,
    );
    if (time > worst && given('save') !== undefined) writeFileSync(given('save'), query);
    worst = Math.max(worst, time);
  }
  console.log(`worst document: ${worst.toFixed(1)} ms`);
  if (worst > most) process.exitCode = 1;
}
