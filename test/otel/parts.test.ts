/** @tags graphql engine */
import { createServer } from 'node:http';
import express from 'express';
import { buildSchema } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createPubSub } from '../../middleware/pubsub.ts';
import { staticFiles } from '../../middleware/static.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { makeFolder } from '../kit.ts';
import { listen, ready } from '../live/client.ts';
import { createSchema } from '../uploads/schema.ts';
import {
  activeSpan,
  idOf,
  kindOf,
  PHASES,
  parentOf,
  REMOTE_SPAN,
  TestTelemetry,
  TRACEPARENT,
  type Values,
} from './telemetry.ts';

let telemetry: TestTelemetry;
beforeEach(() => {
  telemetry = new TestTelemetry(PHASES);
});
afterEach(() => telemetry.stop());

describe('static files', () => {
  const folder = makeFolder({ 'a.txt': 'hello' });
  const app = () => createServer(express().use(staticFiles(folder)));

  it('a request for a file is a span with its status, and with the parent of its headers', async () => {
    const server = app();
    const first = await request(server).get('/a.txt').set('traceparent', TRACEPARENT).expect(200);
    await request(server).get('/a.txt').set('if-none-match', String(first.headers['etag'])).expect(304);
    const [whole, unchanged] = await telemetry.wait('static file', 2);
    expect(whole?.attributes).toEqual({
      'http.response.status_code': 200,
      'espalier.cache.name': 'files',
      'espalier.cache.hit': false,
    });
    expect(parentOf(whole)).toBe(REMOTE_SPAN);
    expect(unchanged?.attributes).toMatchObject({
      'http.response.status_code': 304,
      'espalier.cache.hit': true,
    });
  });

  it('a request that is passed to next() is not a span', async () => {
    const server = app();
    await request(server).get('/missing.txt').expect(404);
    await request(server).post('/a.txt').expect(404);
    await request(server).get('/a.txt').expect(200);
    await telemetry.wait('static file');
    expect(telemetry.names()).toEqual(['static file']);
  });

  it('a list in the option spans without "files" turns off the spans of files and keeps their metrics', async () => {
    telemetry.instrumentation.setConfig({ spans: ['events'] });
    const server = app();
    await request(server).get('/a.txt').expect(200);
    let durations: Values | undefined;
    // The request ends when the server has closed its response.
    while (durations === undefined) ({ 'espalier.file.duration': durations } = await telemetry.metrics());
    expect(durations).toEqual({ '{"http.response.status_code":200}': { count: 1, sum: expect.any(Number) } });
    expect(telemetry.names()).toEqual([]);
  });
});

describe('uploads', () => {
  const query = 'mutation ($file: Upload!) { single(file: $file) { filename } }';
  const app = () =>
    createServer(graphqlHTTP(createSchema([]), { onError: false, uploads: { maxFileBytes: 100 } }));
  const upload = (server: ReturnType<typeof app>, bytes: number) =>
    request(server)
      .post('/')
      .set('traceparent', TRACEPARENT)
      .field('operations', JSON.stringify({ query, variables: { file: null } }))
      .field('map', JSON.stringify({ 0: ['variables.file'] }))
      .attach('0', Buffer.alloc(bytes), 'a.bin');

  it('the receipt of an upload is a span with its files and bytes', async () => {
    await upload(app(), 50);
    const [span] = await telemetry.wait('GraphQL Upload');
    expect(span?.attributes).toEqual({ 'espalier.upload.files': 1, 'espalier.upload.size': 50 });
    expect(parentOf(span)).toBe(REMOTE_SPAN);
  });

  it('a refused upload is a span with the code of the refusal', async () => {
    await upload(app(), 500).expect(413);
    const [span] = await telemetry.wait('GraphQL Upload');
    expect(span?.attributes).toMatchObject({ 'error.type': 'FILE_TOO_LARGE', 'graphql.error.count': 1 });
  });
});

describe('pubsub', () => {
  it('a publish is a span of kind producer, and the events that it causes are linked to it', async () => {
    const pubsub = createPubSub<{ tick: { tick: string } }>();
    const schema = buildSchema(
      'type Query { a: String } type Subscription { tick: String } type Mutation { tick: Boolean }',
    );
    Object.assign(schema.getSubscriptionType()?.getFields()['tick'] as object, {
      subscribe: () => pubsub.subscribe('tick'),
    });
    Object.assign(schema.getMutationType()?.getFields()['tick'] as object, {
      resolve: () => pubsub.publish('tick', { tick: 'tock' }).then(() => true),
    });
    const { server, url } = await listen();
    const subscriptions = attachSubscriptions(server, schema);
    const client = await ready(url);
    client.send({ id: '1', type: 'subscribe', payload: { query: 'subscription { tick }' } });
    const [subscription] = await telemetry.wait('subscription');
    client.send({ id: '2', type: 'subscribe', payload: { query: 'mutation { tick }' } });
    const [event] = await telemetry.wait('GraphQL Subscription Event');
    const [publish] = await telemetry.wait('publish');
    const [execution] = await telemetry.wait('GraphQL Operation Execution');
    expect(kindOf(publish)).toBe('PRODUCER');
    expect(publish?.attributes).toEqual({
      'messaging.system': 'espalier',
      'messaging.operation.name': 'publish',
      'messaging.operation.type': 'send',
    });
    expect(parentOf(publish)).toBe(idOf(execution));
    expect(event?.links.map(({ context }) => context.spanId)).toEqual(
      [subscription, publish].map((span) => idOf(span)),
    );
    await subscriptions.close();
    await pubsub.close();
    server.close();
  });

  it('topics are part of spans and metrics only if the option names allows them', async () => {
    telemetry.instrumentation.setConfig({ names: ['ticks'] });
    const pubsub = createPubSub();
    pubsub.subscribe('ticks');
    await pubsub.publish('ticks', 1);
    await pubsub.publish('user:1', 1);
    expect(telemetry.names()).toEqual(['publish ticks', 'publish']);
    const { 'messaging.client.consumed.messages': delivered, 'messaging.client.operation.duration': sent } =
      await telemetry.metrics();
    expect(delivered).toEqual({ '{"messaging.destination.name":"ticks"}': 1 });
    expect(Object.keys(sent ?? {}).map((key) => JSON.parse(key)['messaging.destination.name'])).toEqual([
      'ticks',
      '_OTHER',
    ]);
    await pubsub.close();
    expect(activeSpan()).toBeUndefined();
  });
});
