/** @tags node-lines graphql */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import zlib from 'node:zlib';
import compressionMiddleware from 'compression';
import express from 'express';
import { buildSchema } from 'graphql';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { createPubSub } from '../../middleware/pubsub.ts';
import { makeFolder } from '../kit.ts';
import { freePort, needs, startProgram } from '../programs.ts';
import { until } from '../until.ts';
import { CODINGS, listen } from './raw.ts';

const schema = buildSchema(`
  type Query { double(n: Int!): Int }
  type Subscription { news: String }
`);
const SUBSCRIPTION = JSON.stringify({ query: 'subscription { news }' });

async function serve(options: GraphQLOptions = {}, wrap = (handler: http.RequestListener) => handler) {
  const events = createPubSub<{ news: { news: string } }>();
  const rootValue = {
    double: ({ n }: { n: number }) => 2 * n,
    news: () => events.subscribe('news'),
  };
  const handler = graphqlHTTP(schema, { compress: true, rootValue, batching: true, ...options });
  const url = await listen(wrap((req, res) => handler(req, res)));
  return { url, publish: (news: string) => events.publish('news', { news }) };
}

const { createZstdDecompress }: { createZstdDecompress?: () => NodeJS.ReadWriteStream } = Object(zlib);
const decoders: Record<string, () => NodeJS.ReadWriteStream> = {
  br: () => zlib.createBrotliDecompress(),
  gzip: () => zlib.createGunzip(),
  zstd: () => (createZstdDecompress as () => NodeJS.ReadWriteStream)(),
};

/** Opens a stream, and decodes its bytes as they arrive. */
async function open(url: string, headers: http.OutgoingHttpHeaders, body = SUBSCRIPTION) {
  const req = http.request(url, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
  });
  req.on('error', () => undefined);
  req.end(body);
  const [res] = (await once(req, 'response')) as [http.IncomingMessage];
  const coding = res.headers['content-encoding'];
  const stream = { req, res, coding, bytes: 0, text: '' };
  res.on('data', (chunk: Buffer) => {
    stream.bytes += chunk.length;
  });
  const decoded = coding === undefined ? res : res.pipe((decoders[coding] as () => NodeJS.ReadWriteStream)());
  decoded.on('data', (chunk: Buffer) => {
    stream.text += chunk.toString();
  });
  decoded.on('error', () => undefined);
  return stream;
}

describe('the option compress and streams', () => {
  it.each(CODINGS)(
    'each event of an event stream arrives before the next one is published: %s',
    async (coding) => {
      const { url, publish } = await serve();
      const stream = await open(url, { 'accept-encoding': coding });
      expect(stream.coding).toBe(coding);
      expect(stream.res.headers).toMatchObject({
        vary: 'Accept, Accept-Encoding',
        'cache-control': 'no-store, no-transform',
      });
      for (let index = 1; index <= 50; index++) {
        await publish(`event ${index} of many that resemble each other`);
        await until(() => stream.text.includes(`event ${index} of`));
      }
      expect(stream.bytes).toBeLessThan(stream.text.length / 2);
      stream.req.destroy();
    },
  );

  it.each(CODINGS)('multipart subscriptions and JSON lines are compressed too: %s', async (coding) => {
    const { url, publish } = await serve();
    const multipart = await open(url, {
      'accept-encoding': coding,
      accept: 'multipart/mixed;subscriptionSpec=1.0',
    });
    expect(multipart.coding).toBe(coding);
    await publish('one');
    await until(() => multipart.text.includes('"one"'));
    multipart.req.destroy();
    const batch = Array.from({ length: 3 }, (_, n) => ({ query: `{ double(n: ${n}) }` }));
    const lines = await open(
      url,
      { 'accept-encoding': coding, accept: 'application/jsonl' },
      JSON.stringify(batch),
    );
    expect(lines.coding).toBe(coding);
    await once(lines.res, 'end');
    await until(() => lines.text.trim().split('\n').length === 3);
  });

  it('a stream ends complete, with its coding', async () => {
    const { url } = await serve();
    const stream = await open(url, { 'accept-encoding': 'gzip' }, '{"query":"{ double(n: 4) }"}');
    expect(stream.coding).toBe('gzip');
    await once(stream.res, 'end');
    await until(() => stream.text.endsWith('event: complete\ndata:\n\n'));
    expect(stream.text).toContain('{"data":{"double":8}}');
  });

  it('streams of requests with a cookie are plain unless compress is "all"', async () => {
    const { url } = await serve();
    const plain = await open(url, { 'accept-encoding': 'gzip', cookie: 'session=1' });
    expect(plain.coding).toBeUndefined();
    plain.req.destroy();
    const { url: other } = await serve({ compress: 'all' });
    const coded = await open(other, { 'accept-encoding': 'gzip', cookie: 'session=1' });
    expect(coded.coding).toBe('gzip');
    coded.req.destroy();
  });

  it('streams are plain while the compressors of others take the memory, and compressed when these have left', async () => {
    const { url, publish } = await serve({ compress: true });
    const first = [await open(url, { 'accept-encoding': 'gzip' })];
    while (first.at(-1)?.coding === 'gzip') first.push(await open(url, { 'accept-encoding': 'gzip' }));
    const third = first.pop() as (typeof first)[number];
    expect(first.length).toBeGreaterThan(100);
    expect(third.coding).toBeUndefined();
    await publish('for all');
    for (const stream of [...first, third]) await until(() => stream.text.includes('for all'));
    for (const { req } of first) req.destroy();
    let coding: string | undefined;
    while (coding === undefined) {
      const next = await open(url, { 'accept-encoding': 'gzip' });
      coding = next.coding;
      next.req.destroy();
    }
    third.req.destroy();
  });

  it('a client that stops reading for a while gets all events, and others need not wait for it', async () => {
    const { url, publish } = await serve();
    const [slow, steady] = [
      await open(url, { 'accept-encoding': 'gzip' }),
      await open(url, { 'accept-encoding': 'gzip' }),
    ];
    slow.res.socket.pause();
    const noise = Array.from({ length: 1000 }, () => randomBytes(8).toString('hex')).join('');
    for (let index = 0; index < 200; index++) {
      await publish(`${index} ${noise.slice(index * 50)}`);
      await until(() => steady.text.includes(`"${index} `));
    }
    expect(slow.text.length).toBeLessThan(steady.text.length);
    slow.res.socket.resume();
    // A stream that cannot be written gets no keep-alive comments.
    const eventsOf = ({ text }: { text: string }): string => text.replace(/^:.*\n\n/gm, '');
    await until(() => eventsOf(slow) === eventsOf(steady));
    for (const { req } of [slow, steady]) req.destroy();
  });

  it('the package compression in front leaves coded streams alone', async () => {
    const { url, publish } = await serve({}, (handler) =>
      express().use(compressionMiddleware(), (req, res) => handler(req, res)),
    );
    const stream = await open(url, { 'accept-encoding': 'gzip, br' });
    expect(stream.coding).toBe('br');
    await publish('through compression');
    await until(() => stream.text.includes('through compression'));
    stream.req.destroy();
  });

  needs('nginx').it('events arrive through nginx, which compresses nothing twice', async () => {
    const { url, publish } = await serve();
    const folder = makeFolder();
    const port = await freePort();
    const file = join(folder, 'nginx.conf');
    writeFileSync(
      file,
      `daemon off; pid ${folder}/pid; error_log stderr; events {} http { access_log off; gzip on; gzip_proxied any; gzip_min_length 1; gzip_types *;
      client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
      server { listen 127.0.0.1:${port}; location / { proxy_pass ${new URL(url).origin}; proxy_http_version 1.1; } } }`,
    );
    const stop = await startProgram('nginx', ['-c', file, '-p', folder], { port });
    for (const coding of CODINGS) {
      const stream = await open(`http://127.0.0.1:${port}/`, { 'accept-encoding': coding });
      expect(stream.coding).toBe(coding);
      for (let index = 1; index <= 10; index++) {
        await publish(`event ${index} through nginx`);
        await until(() => stream.text.includes(`event ${index} through`));
      }
      stream.req.destroy();
    }
    await stop();
  });
});
