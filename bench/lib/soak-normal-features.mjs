import { createHash } from 'node:crypto';

const JSON_HEADERS = { 'content-type': 'application/json' };
const ARTICLES = 10;

/** Requests of ordinary clients that use documents by id, caches, costs, budgets and sources of files. */
export function featureKinds({ send, fault, isIncremental }) {
  let count = 0;
  const busy = new Set();
  const check = (isRight, kind, { status, text }) =>
    isRight || fault(`${kind} ${status} ${text.slice(0, 100)}`);
  const post = (body, headers = {}) =>
    send({
      path: '/graphql',
      method: 'POST',
      headers: { ...JSON_HEADERS, ...headers },
      body: JSON.stringify(body),
    });
  const get = (path, headers = {}) => send({ path, headers });

  const kinds = {
    async trusted() {
      const response = await get('/graphql/hello');
      check(response.text === '{"data":{"hello":"world"}}', 'trusted', response);
    },
    async apq() {
      const query = `{ hello id } # ${count++ % 50}`;
      const sha256Hash = createHash('sha256').update(query).digest('hex');
      const extensions = { persistedQuery: { version: 1, sha256Hash } };
      let response = await get(`/graphql?extensions=${encodeURIComponent(JSON.stringify(extensions))}`);
      if (response.text.includes('PERSISTED_QUERY_NOT_FOUND')) response = await post({ query, extensions });
      check(response.text === '{"data":{"hello":"world","id":1}}', 'apq', response);
    },
    /** Renames an article; the next response must have the new title. */
    async cached() {
      const id = `n${count++ % ARTICLES}`;
      if (busy.has(id)) return;
      busy.add(id);
      try {
        const title = `title ${count}`;
        const renamed = await post({
          query: 'mutation ($id: ID!, $title: String!) { rename(id: $id, title: $title) { id } }',
          variables: { id, title },
        });
        check(renamed.text === `{"data":{"rename":{"id":"${id}"}}}`, 'rename', renamed);
        const path = `/graphql?query={article(id:"${id}"){id,title,body}}`;
        const first = await get(path);
        check(first.text.includes(`"${title}"`), `article is not "${title}":`, first);
        const second = await get(path, { 'if-none-match': first.headers.etag });
        check(second.status === 304 && second.headers['cache-tag'] === `article-${id}`, 'cached', second);
      } finally {
        busy.delete(id);
      }
    },
    async stale() {
      const id = `l${Math.floor(Math.random() * 5)}`;
      const response = await get(`/graphql?query={late(id:"${id}"){id}}`, { 'x-user': `u${count++ % 3}` });
      check(response.text === `{"data":{"late":{"id":"${id}"}}}`, 'stale', response);
    },
    async cost() {
      const allowed = await post({ query: '{ books(first: 2) { title } }' });
      check(allowed.headers['graphql-cost'] === '6;max=500', 'cost', allowed);
      const refused = await post({ query: '{ books(first: 1000) { title } }' });
      check(refused.status === 400 && refused.text.includes('COST_LIMIT'), 'over the cost', refused);
    },
    async budget() {
      const query = '{ books(first: 100) { title } }';
      const client = { 'x-client': `client ${process.pid} ${count++}` };
      const replies = [];
      for (let index = 0; index < 4; index++) replies.push(await post({ query }, client));
      const statuses = replies.map(({ status }) => status).join();
      check(statuses === '200,200,200,429', `budget ${statuses}`, replies[3]);
    },
    async memory() {
      const response = await get('/memory/page.css', { 'accept-encoding': pick(['gzip', 'br', 'identity']) });
      check(response.status === 200, 'memory', response);
      const range = await get('/memory/stored.bin', { range: 'bytes=100-199' });
      check(range.status === 206 && range.text.length === 100, 'a range of memory', range);
    },
    async inspect() {
      const response = await get('/inspect/figures.json', { 'x-guard': 'open' });
      check(response.status === 200 && JSON.parse(response.text).operations.length > 0, 'inspect', response);
    },
  };
  if (!isIncremental) return kinds;
  return {
    ...kinds,
    async deferred() {
      const query = '{ hello ... @defer { lines(count: 50) late(id: "d") { title } } }';
      const accept = pick(['multipart/mixed;incrementalSpec=v0.2', 'text/event-stream', 'application/jsonl']);
      const response = await post({ query }, { accept });
      check(isComplete(response), 'deferred', response);
    },
    async streamed() {
      const query = '{ hello lines(count: 50) @stream(initialCount: 3) }';
      const response = await post({ query }, { accept: 'multipart/mixed;deferSpec=20220824' });
      check(isComplete(response), 'streamed', response);
    },
  };
}

/** Whether an incremental response has several payloads, and the last line of the list. */
const isComplete = ({ text }) =>
  ['"hello":"world"', '"hasNext":true', '"hasNext":false', 'line 49'].every((part) => text.includes(part));

const pick = (list) => list[Math.floor(Math.random() * list.length)];
