/** @tags once */
// createPubSub and redisStore with a Redis that accepts TLS connections only.

import { generateKeyPairSync } from 'node:crypto';
import { type AddressInfo, connect as connectTo, createServer, type Socket } from 'node:net';
import { Redis, type RedisOptions } from 'ioredis';
import { redisStore } from '../../middleware/cache.ts';
import { createPubSub, type PubSub, type PubSubOptions } from '../../middleware/pubsub.ts';
import { entryOf, textOf, versionOf } from '../cache/store-entries.ts';
import { tls as certificate, tlsFiles, trusted } from '../exchange.ts';
import { atEnd, listen } from '../kit.ts';
import { freePort } from '../programs.ts';
import { take } from '../pubsub/events.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { until } from '../until.ts';

interface Events {
  tick: number;
}

let server: RedisServer;
let port: number;
/** A client without TLS. */
let admin: Redis;

beforeAll(async () => {
  port = await freePort();
  const { key, cert } = tlsFiles;
  server = await startRedis([
    ...['--tls-port', `${port}`, '--tls-key-file', key, '--tls-cert-file', cert],
    ...['--tls-ca-cert-file', cert, '--tls-auth-clients', 'optional'],
  ]);
  admin = new Redis(server.url);
});
afterAll(async () => {
  admin.disconnect();
  await server.kill();
});

function clientOf(settings: RedisOptions): Redis {
  const client = new Redis({
    port,
    tls: trusted,
    ...settings,
    lazyConnect: true,
    replyMapping: 'legacy',
  });
  client.on('error', () => undefined);
  atEnd(() => client.disconnect());
  return client;
}

function connect(settings: RedisOptions, options: PubSubOptions = {}): PubSub<Events> {
  const events = createPubSub<Events>({ transport: clientOf(settings), onError: false, ...options });
  atEnd(() => events.close());
  return events;
}

it('createPubSub and redisStore use the TLS settings of a client, also with a certificate', async () => {
  const tls = { ...trusted, ...certificate };
  const events = connect({ tls }, { history: {} });
  const stream = events.subscribe('tick');
  await events.ready('tick');
  await events.publish('tick', 1);
  expect(await take(stream, 1)).toEqual([1]);
  const store = redisStore({ redis: clientOf({ tls }) });
  atEnd(() => store.close());
  expect(await store.set('k', entryOf('1', ['a']), await versionOf(store))).toBe(true);
  expect(await textOf(store)).toBe('1');
});

it('createPubSub rejects while a certificate is not trusted, and names the reason', async () => {
  const redis = `rediss://127.0.0.1:${port}`;
  const events = createPubSub<Events>({ transport: redis, onError: false });
  atEnd(() => events.close());
  await expect(events.publish('tick', 1)).rejects.toThrow(
    /^Redis is not connected: .*self-signed certificate/,
  );
});

it('createPubSub can be closed during the handshake with a Redis whose certificate is not trusted', async () => {
  const connections = new Set<Socket>();
  // Redis replies to the ClientHello when the client has ended the connection: with its certificate and an alert.
  const proxy = createServer({ allowHalfOpen: true }, (client) => {
    client.on('error', () => undefined);
    client.once('data', (hello) => {
      connections.add(client);
      client.once('end', () => {
        const upstream = connectTo(port, '127.0.0.1');
        upstream.end(hello);
        upstream.pipe(client);
      });
    });
  });
  await listen(proxy);
  atEnd(() => proxy.close());
  const { port: proxyPort } = proxy.address() as AddressInfo;
  const events = createPubSub<Events>({ transport: `rediss://127.0.0.1:${proxyPort}`, onError: false });
  await until(() => connections.size === 2);
  await events.close();
  // An exception in a listener of the socket would fail the test.
  await until(() => [...connections].every(({ destroyed }) => destroyed));
});

it('createPubSub rejects and can be closed if the key of a client does not match its certificate', async () => {
  const reported: string[] = [];
  const { privateKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const tls = { ...trusted, cert: certificate.cert, key: privateKey };
  const events = connect({ tls }, { onError: ({ message }) => reported.push(message) });
  await expect(events.publish('tick', 1)).rejects.toThrow(/^Redis is not connected: .*key values mismatch/);
  await events.close();
  expect(reported).toContainEqual(expect.stringContaining('key values mismatch'));
});
