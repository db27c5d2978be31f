import { connect } from 'node:net';
import { runTopic } from './harness.mjs';
import { createBus, eventOf, QUERY, TYPES } from './lib/event-bus.mjs';

const STREAMS = 1000;
/** `/publish?events=8` publishes synchronously. */
function publishOn(publish) {
  let id = 0;
  return (req, res) => {
    const events = Number(new URL(req.url, 'http://x').searchParams.get('events'));
    for (let i = 0; i < events; i++) publish(eventOf(++id));
    res.end();
  };
}

async function espalier(share) {
  const { createServer } = await import('node:http');
  const { buildSchema } = await import('graphql');
  const { attachSubscriptions, graphqlHTTP } = await import('espalier');
  const bus = createBus();
  const schema = buildSchema(TYPES);
  schema.getSubscriptionType().getFields().event.subscribe = () => bus.subscribe();
  const handler = graphqlHTTP(schema, { graphiql: false });
  const publish = publishOn(bus.publish);
  const server = createServer((req, res) =>
    req.url.startsWith('/publish') ? publish(req, res) : handler(req, res),
  );
  attachSubscriptions(server, handler, { share });
  return server;
}

const contestants = {
  'bare res.write': async () => {
    const { createServer } = await import('node:http');
    const clients = new Set();
    const publish = publishOn((event) => {
      const text = `event: next\ndata: ${JSON.stringify({ data: event })}\n\n`;
      for (const client of clients) client.write(text);
    });
    return createServer((req, res) => {
      if (req.url.startsWith('/publish')) return publish(req, res);
      res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
      res.write(':\n\n');
      clients.add(res);
    });
  },
  'espalier, shared': () => espalier(() => 'all'),
  'espalier, private': () => espalier(undefined),
};

const fleets = new Map();

/** Opens the streams and counts the events that arrive. */
async function openStreams(port) {
  const fleet = { seen: 0, wanted: 0, onAll: () => undefined };
  const path = `/graphql?query=${encodeURIComponent(QUERY)}`;
  const head = `GET ${path} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n`;
  await Promise.all(
    Array.from(
      { length: STREAMS },
      () =>
        new Promise((resolve, reject) => {
          const socket = connect(port, '127.0.0.1', () => socket.write(head));
          socket.once('data', resolve).once('error', reject);
          socket.on('data', (chunk) => {
            const text = chunk.latin1Slice(0, chunk.length);
            // Each event has one `"data"`, which a chunk may split only between two bursts.
            for (let at = text.indexOf('{"data"'); at !== -1; at = text.indexOf('{"data"', at + 1))
              fleet.seen++;
            if (fleet.seen >= fleet.wanted) fleet.onAll();
          });
        }),
    ),
  );
  return fleet;
}

function drive(burst) {
  return async ({ port, count }) => {
    let fleet = fleets.get(port);
    if (fleet === undefined) {
      fleet = await openStreams(port);
      fleets.set(port, fleet);
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    const bursts = Math.max(1, Math.round(count / (STREAMS * burst)));
    for (let i = 0; i < bursts; i++) {
      const all = new Promise((resolve) => {
        fleet.onAll = resolve;
      });
      fleet.wanted = fleet.seen + STREAMS * burst;
      await (await fetch(`http://127.0.0.1:${port}/publish?events=${burst}`)).arrayBuffer();
      await all;
    }
    return { operations: bursts * STREAMS * burst };
  };
}

export const topic = {
  name: 'streaming',
  title: 'Server-sent events: one event, a thousand streams',
  about:
    '1000 event streams with one subscription each. An event has three fields and about 100 bytes. "bare res.write" is a ' +
    'loop over `res.write` of a prepared string, without protocol or execution.',
  packages: ['graphql'],
  ratios: ['bare res.write'],
  contestants,
  loads: [
    { name: 'bursts of 8 events', drive: drive(8), count: 160_000, warmup: 40_000, unit: 'event' },
    { name: 'one event at a time', drive: drive(1), count: 100_000, warmup: 50_000, unit: 'event' },
  ],
};

await runTopic(import.meta.url, topic);
