import { median } from './median.mjs';

/** The rows of the table in README.md: a load of a topic, our row in it, and the peers to compare with. */
const HEADLINE = [
  {
    topic: 'static',
    load: '10 KiB',
    operation: 'a file of 10 KiB under Express',
    ours: 'Express: espalier',
    peers: { '`express.static`': 'Express: express.static' },
  },
  ...[
    ['trivial', 'a short query under Express'],
    ['list of 20 × 5', 'a list of 20 objects under Express'],
    ['large 200 × 10, 480 KB', '475 KiB of JSON under Express'],
  ].map(([load, operation]) => ({
    topic: 'graphql',
    load,
    operation,
    ours: 'espalier (Express)',
    peers: {
      'Apollo Server': 'Apollo Server (Express)',
      'graphql-http': 'graphql-http (Express)',
      Yoga: 'Yoga (Express)',
    },
  })),
  {
    topic: 'uploads',
    load: '64 KiB',
    operation: 'an upload of 64 KiB',
    ours: 'espalier',
    peers: { Yoga: 'Yoga', 'graphql-upload': 'graphql-upload' },
  },
  {
    topic: 'fanout',
    load: 'bursts of 8 events',
    operation: 'an event for one of 1000 sockets, shared, in bursts',
    ours: 'espalier, shared',
    peers: { '`ws.send` of a prepared string': 'raw ws', 'graphql-ws': 'graphql-ws' },
  },
  {
    topic: 'server',
    load: 'light handler',
    operation: 'a light handler with `createServer`',
    ours: 'Express 5 + createServer',
    peers: { '`app.listen`': 'Express 5', 'bare node:http': 'bare node:http' },
  },
];

/** The topics with the arguments that select their headline loads. */
export function headlineRuns() {
  return [...new Set(HEADLINE.map(({ topic }) => topic))].map((topic) => {
    const loads = HEADLINE.filter((row) => row.topic === topic).map(({ load }) => load);
    return { topic, words: [`--only=^(${loads.join('|')})$`] };
  });
}

/** The table for README.md, from the results of the topics by name. */
export function headlineTable(results) {
  const lines = ['| operation | espalier | compared with |', '|---|---:|---|'];
  for (const { topic, load, operation, ours, peers } of HEADLINE) {
    const rows = results[topic]?.loads.find(({ name }) => name === load)?.rows;
    const own = rows?.find(({ name }) => name === ours);
    if (own === undefined) continue;
    const ratios = Object.entries(peers).flatMap(([label, name]) => {
      const peer = rows.find((row) => row.name === name);
      return peer === undefined ? [] : [{ label, ratio: timesOf(peer, own) }];
    });
    ratios.sort((a, b) => a.ratio - b.ratio);
    const compared = ratios.map(({ label, ratio }) => `${label} ${ratio.toFixed(1)}`).join(', ');
    lines.push(`| ${operation} | ${cpu(own.cpu)} | ${compared} times |`);
  }
  return `${lines.join('\n')}\n`;
}

const timesOf = (peer, own) => median(peer.rounds.map((time, round) => time / own.rounds[round]));
const cpu = (microseconds) =>
  microseconds >= 500
    ? `${(microseconds / 1000).toFixed(1)} ms`
    : `${microseconds.toFixed(microseconds < 10 ? 1 : 0)} µs`;
