// Actions of malicious clients against event streams, cursors, caches, documents by id, costs, budgets and sources of files.
import { createHash } from 'node:crypto';
import { mutate, random, randomDocument, render } from './document-genes.mjs';
import { form, GET, json, POST, pick, sleep, withHeaders } from './soak-bytes.mjs';

const below = (count) => Math.floor(random() * count);
const EVENTS = 'Accept: text/event-stream\r\n';
const MULTIPART = 'Accept: multipart/mixed;subscriptionSpec=1.0\r\n';
const DEFERRED = 'Accept: multipart/mixed;incrementalSpec=v0.2\r\n';
const queryOf = (query, more = '') => `/graphql?query=${encodeURIComponent(query)}${more}`;
const sha256 = (text) => createHash('sha256').update(text).digest('hex');
const persisted = (query, sha256Hash) => ({
  query,
  extensions: { persistedQuery: { version: 1, sha256Hash } },
});
const rename = () => json({ query: `mutation { rename(id: "h${below(50)}", title: "x") { id } }` });
const CURSORS = [
  '',
  'x',
  '0',
  'tick=1',
  'a.b.c',
  '..',
  'x'.repeat(9000),
  'null',
  '{"after":1}',
  'é',
  'A'.repeat(40),
];

/** Complete requests of all kinds. */
const REQUESTS = [
  () => Buffer.from(GET(queryOf(`subscription { ${pick(['tick', 'shared', 'bulk'])} }`), EVENTS)),
  () => withHeaders(json({ query: 'subscription { tick }' }), MULTIPART),
  () => withHeaders(json({ query: '{ hello ... @defer { lines(count: 500) slow } }' }), DEFERRED),
  () => Buffer.from(GET(`/graphql?query={article(id:"${below(500)}"){title,body}}`)),
  () =>
    Buffer.from(GET(`/memory/${pick(['page.css', 'stored.bin', 'nothing'])}`, 'Accept-Encoding: gzip\r\n')),
  () => Buffer.from(GET('/memory/page.css', 'Accept-Encoding: br, gzip\r\n')),
  () => Buffer.from(GET('/graphql/hello')),
  () => json(persisted(`{ hello } # ${below(1e6)}`, '0'.repeat(64))),
  () => POST('multipart/form-data; boundary=x', form(pick([100, 100_000]))),
  rename,
];

export const FEATURE_ACTIONS = {
  'request cut at a random byte': async ({ send }) => {
    const bytes = pick(REQUESTS)();
    await send(bytes.subarray(0, below(bytes.length + 1)), pick([1, 20, 300, 6000]));
  },
  'requests with changed bytes': async ({ send }) => {
    const bytes = Buffer.concat(Array.from({ length: 1 + below(5) }, () => pick(REQUESTS)()));
    for (let count = 1 + below(5); count > 0; count--) bytes[below(bytes.length)] = below(256);
    await send(bytes, pick([20, 400]));
  },
  garbage: ({ send }) => send(Buffer.from(Array.from({ length: 2000 }, () => below(256))), 100),
  'pipelined requests of all kinds': ({ send }) =>
    send(Buffer.concat(Array.from({ length: 20 }, () => pick(REQUESTS)())), pick([5, 50, 500]), {
      read: random() < 0.5,
    }),
  'event stream that leaves': ({ send }) =>
    send(
      GET(queryOf(`subscription { ${pick(['tick', 'shared', 'bulk', 'nope'])} }`), pick([EVENTS, MULTIPART])),
      below(300),
    ),
  'event stream that reads nothing': ({ send }) =>
    send(GET(queryOf('subscription { bulk }'), pick([EVENTS, MULTIPART])), pick([500, 8000]), {
      read: false,
    }),
  'deferred response that leaves': ({ send }) =>
    send(
      withHeaders(
        json({
          query: pick(['{ hello ... @defer { slow lines(count: 3000) } }', '{ lines(count: 9000) @stream }']),
        }),
        DEFERRED,
      ),
      pick([1, 100, 1000]),
      { read: random() < 0.5 },
    ),
  'wrong cursors': ({ send, socket }) => {
    const after = pick(CURSORS);
    const extensions = JSON.stringify({ after: pick([after, { after }, 1]) });
    if (random() < 0.5) {
      const path = queryOf('subscription { tick }', `&extensions=${encodeURIComponent(extensions)}`);
      return send(GET(path, EVENTS), 'response');
    }
    return socket(async (ws) => {
      const payload = { query: 'subscription { tick }', extensions: { after } };
      ws.send(JSON.stringify({ id: '1', type: pick(['subscribe', 'start']), payload }));
      await sleep(100);
    });
  },
  'cursor of another user': async ({ send, receive }) => {
    const path = queryOf('subscription { tick }', `&extensions=${encodeURIComponent('{"after":null}')}`);
    const cursor =
      /"cursor":"([^"]+)"/.exec(await receive(GET(path, `${EVENTS}X-User: a\r\n`)))?.[1] ?? 'none';
    const changed = random() < 0.5 ? cursor : cursor.replace(/.$/, 'x');
    await send(
      GET(queryOf('subscription { tick }'), `${EVENTS}X-User: b\r\nLast-Event-ID: ${changed}\r\n`),
      200,
    );
  },
  'flood of the response cache': ({ send }) =>
    send(
      Array.from({ length: 30 }, () =>
        GET(`/graphql?query={article(id:"${below(1e6)}"){title,body}}`, `X-User: ${below(1e6)}\r\n`),
      ).join(''),
      pick([5, 300]),
    ),
  'results that are created for clients that leave': ({ send }) =>
    send(
      GET(`/graphql?query={late(id:"l${below(5)}"){id}}`, `X-User: u${below(3)}\r\n`),
      pick([1, 10, 25, 60]),
    ),
  'mutations during cached reads': ({ send }) =>
    send(
      Buffer.concat([rename(), Buffer.from(GET('/graphql?query={article(id:"h1"){title}}')), rename()]),
      100,
    ),
  'unknown documents': ({ send }) =>
    send(
      pick([
        GET(`/graphql/sha256:${sha256(`${random()}`)}`),
        GET('/graphql/hello/../x'),
        json({ documentId: pick(['nope', '__proto__', 'constructor', 1, null, {}]) }),
        json(persisted('{ hello }', pick(['0'.repeat(64), '', 1, '__proto__']))),
      ]),
      'response',
    ),
  'flood of persisted queries': ({ send }) => {
    const one = () => {
      const query = random() < 0.5 ? render(mutate(randomDocument())) : `{ hello } # ${random()}`;
      return json(persisted(query, sha256(query)));
    };
    return send(Buffer.concat(Array.from({ length: 4 }, one)), pick([20, 1000]));
  },
  'expensive operations': ({ send }) =>
    send(
      json({
        query: 'query ($n: Int) { books(first: $n) { title } }',
        variables: { n: pick([1e9, -1, 2 ** 31 - 1, 1e300, '1', null, []]) },
      }),
      'response',
    ),
  'operations over the budget': ({ send }) => {
    const client = `X-Client: ${pick(['one', `${random()}`])}\r\n`;
    const one = () => withHeaders(json({ query: '{ books(first: 100) { title } }' }), client);
    return send(Buffer.concat(Array.from({ length: 10 }, one)), pick([10, 500]));
  },
  'ranges and codings of sources': ({ send }) =>
    send(
      GET(
        pick(['/memory/stored.bin', '/memory/page.css', '/memory/..%2f', '/memory/%00']),
        `${pick(['Range: bytes=0-', 'Range: bytes=5-1', 'Range: bytes=-1', 'Accept-Encoding: br;q=x, *;q=0', 'Accept-Encoding: zstd'])}\r\n`,
      ),
      pick([1, 5, 'response']),
      { read: random() < 0.7 },
    ),
  'figures without permission': ({ send }) =>
    send(
      pick([GET('/inspect/figures.json'), GET('/inspect'), GET('/inspect/x', 'X-Guard: open\r\n')]),
      'response',
    ),
};
