/** @tags node graphql */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import * as http from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { Client, fetchExchange, gql } from '@urql/core';
import { meros } from 'meros/node';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { incrementalSchema, V17 } from '../graphql/incremental-schema.ts';
import { atEnd, makeFolder } from '../kit.ts';
import { freePort, needs } from '../programs.ts';
import { root } from '../snippets.ts';
import { until } from '../until.ts';
import { EVENTS, open, serve } from './serve-streams.ts';
import { assertEvents } from './urql-events.ts';

const EVENTS_OF_A = { query: 'subscription { events(topic: "a") }' };

async function serveIncremental() {
  const { schema, calls } = incrementalSchema();
  const handler = graphqlHTTP(schema, { graphiql: false, onError: false });
  const server = http.createServer((req, res) => handler(req, res));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  atEnd(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`, calls };
}

/** Starts nginx with nothing but `proxy_pass`, so that it buffers responses, and returns the URL of the proxy. */
async function behindNginx(upstream: number): Promise<string> {
  const folder = makeFolder();
  const port = await freePort();
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; pid ${join(folder, 'pid')}; error_log stderr; events {}
     http { access_log off; ${paths.join(' ')}
       server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${upstream}; } } }`,
  );
  const nginx = spawn('nginx', ['-p', folder, '-c', file], {
    stdio: 'ignore',
    env: { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` },
  });
  atEnd(async () => {
    nginx.kill();
    if (nginx.exitCode === null) await once(nginx, 'exit');
  });
  const url = `http://127.0.0.1:${port}/graphql`;
  for (let ready = false; !ready; ) {
    ready = await fetch(url).then(
      () => true,
      () => false,
    );
    if (!ready) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return url;
}

describe('streaming responses and their clients', () => {
  needs('curl').it(
    'curl with the command of docs/streaming.md prints each event when it is published',
    async () => {
      const { url, live } = await serve();
      const page = readFileSync(join(root, 'docs/streaming.md'), 'utf8');
      const [command = ''] = /^curl .*$/m.exec(page) ?? [];
      const line = command
        .replace('http://localhost:3000/graphql', url)
        .replace('subscription{tick}', 'subscription{events(topic:%22a%22)}');
      expect(line).toContain(url);
      const curl = spawn('sh', ['-c', `exec ${line.replace('curl ', 'curl -s ')}`]);
      atEnd(() => curl.kill());
      let printed = '';
      curl.stdout.on('data', (chunk: Buffer) => {
        printed += chunk.toString();
      });
      await until(() => live.open === 1);
      for (const event of ['one', 'two']) {
        live.publish('a', event);
        await until(() => printed.endsWith(`data: {"data":{"events":"${event}"}}\n\n`));
      }
    },
  );

  needs('nginx').it(
    'nginx passes each event and each part on immediately, although it buffers responses by default',
    async () => {
      const { port, live } = await serve();
      const url = await behindNginx(port);
      const events = await open(url, { params: EVENTS_OF_A, headers: EVENTS });
      const accept = 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0, application/json';
      const parts = await open(url, { params: EVENTS_OF_A, headers: { accept } });
      await until(() => live.open === 2);
      for (const event of ['one', 'two', 'three']) {
        live.publish('a', event);
        await until(() => [events, parts].every(({ body }) => body.includes(`"${event}"`)));
      }
      expect(events.res.headers['x-accel-buffering']).toBeUndefined();
      events.req.destroy();
      parts.req.destroy();
      await until(() => live.open === 0);
    },
  );

  needs('nginx').it('nginx passes the payloads of a deferred response on immediately', async () => {
    const { url, calls } = await serveIncremental();
    const proxied = await behindNginx(Number(new URL(url).port));
    const params = { query: '{ hello ... @defer { slow } }' };
    // graphql 16 sends one piece, when the slow resolver has finished.
    if (!V17) calls.release();
    const reading = await open(proxied, {
      params,
      headers: { accept: 'multipart/mixed;incrementalSpec=v0.2, application/json' },
    });
    if (V17) await until(() => reading.body.endsWith('"hasNext":true}\r\n---'));
    if (V17) calls.release();
    await until(() => reading.ended);
    expect(reading.body).toContain('"slow":"slow"');
  });

  it('a proxy that forwards single bytes does not change what graphql-sse receives', async () => {
    const { port } = await serve();
    const proxy = createServer((client) => {
      const upstream = connect(port, '127.0.0.1');
      client.pipe(upstream);
      upstream.on('data', (chunk: Buffer) => {
        for (const byte of chunk) client.write(Buffer.of(byte));
      });
      upstream.on('end', () => client.end());
      upstream.on('error', () => client.destroy());
      client.on('error', () => upstream.destroy());
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    atEnd(() => proxy.close());
    const { createClient } = await import('graphql-sse');
    const client = createClient({
      url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/graphql`,
      retryAttempts: 0,
    });
    const results: unknown[] = [];
    for await (const result of client.iterate({ query: 'subscription { count(to: 3) }' }))
      results.push(result);
    expect(results).toEqual([1, 2, 3].map((count) => ({ data: { count } })));
    client.dispose();
  });

  it('urql subscribes over fetch', async () => {
    const { url, live } = await serve();
    const client = new Client({
      url,
      exchanges: [fetchExchange],
      fetchSubscriptions: true,
      preferGetMethod: false,
    });
    await assertEvents(client, live);
  });

  it('urql merges the payloads of a deferred query and of a streamed list', async () => {
    const { url, calls } = await serveIncremental();
    const client = new Client({ url, exchanges: [fetchExchange], preferGetMethod: false });
    const results: { data: unknown; hasNext: boolean }[] = [];
    client
      .query(gql('{ hello list @stream(initialCount: 1) ... @defer { slow } }'), {})
      .subscribe(({ data, hasNext, error }) =>
        results.push({ data: JSON.parse(JSON.stringify(error ?? data)), hasNext }),
      );
    if (V17) await until(() => results.length > 0);
    calls.release();
    await until(() => results.at(-1)?.hasNext === false);
    if (V17) expect(results[0]).toMatchObject({ data: { hello: 'world' }, hasNext: true });
    expect(results.at(-1)?.data).toEqual({ hello: 'world', list: [1, 2, 3], slow: 'slow' });
  });

  it('meros reads the parts of a multipart subscription', async () => {
    const { url } = await serve();
    const accept = 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0, application/json';
    const req = http.request(url, {
      method: 'POST',
      headers: { accept, 'content-type': 'application/json' },
    });
    req.end(JSON.stringify({ query: 'subscription { count(to: 2) }' }));
    const [res] = (await once(req, 'response')) as [http.IncomingMessage];
    const seen: unknown[] = [];
    const parts = await meros<object>(res);
    if (Symbol.asyncIterator in parts) for await (const { body } of parts) seen.push(body);
    expect(seen).toEqual([1, 2].map((count) => ({ payload: { data: { count } } })));
  });

  it('meros reads each part of a deferred response when the server sends it', async () => {
    const { url, calls } = await serveIncremental();
    const accept = 'multipart/mixed;incrementalSpec=v0.2, application/json';
    const req = http.request(url, {
      method: 'POST',
      headers: { accept, 'content-type': 'application/json' },
    });
    req.end(JSON.stringify({ query: '{ hello ... @defer { slow } }' }));
    if (!V17) calls.release();
    const [res] = (await once(req, 'response')) as [http.IncomingMessage];
    const seen: object[] = [];
    const parts: object = await meros<object>(res);
    // meros returns a response in one piece unchanged.
    expect(parts === res).toBe(!V17);
    if (V17) {
      for await (const { body, json } of parts as AsyncIterable<{ body: unknown; json: boolean }>) {
        expect(json).toBe(true);
        seen.push(body as object);
        calls.release();
      }
    }
    if (V17) {
      expect(seen).toEqual([
        { data: { hello: 'world' }, pending: [{ id: '0', path: [] }], hasNext: true },
        { incremental: [{ id: '0', data: { slow: 'slow' } }], completed: [{ id: '0' }], hasNext: false },
      ]);
    }
  });
});
