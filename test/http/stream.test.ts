/** @tags node-lines */
import { once } from 'node:events';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import { createGunzip } from 'node:zlib';
import compression from 'compression';
import express from 'express';
import {
  EVENT_STREAM,
  type Framing,
  JSON_LINES,
  multipartMixed,
  streamPayloads,
} from '../../src/http/stream.ts';
import { listen } from '../kit.ts';
import { until } from '../until.ts';
import { type PayloadSource, payloadSource } from './payloads.ts';

const MULTIPART = multipartMixed({ boundary: '-', parameters: 'incrementalSpec=v0.2' });

/** Starts a server that streams the payloads of a source. */
async function serve(
  source: PayloadSource,
  { framing = EVENT_STREAM, keepAlive = 0, listener = (run: http.RequestListener) => run } = {},
) {
  const errors: unknown[] = [];
  let finished = false;
  const server = http.createServer(
    listener(async (_, res) => {
      await streamPayloads(res, {
        framing,
        status: 200,
        payloads: source,
        keepAlive,
        onError(error) {
          errors.push(error);
          return '{"failed":true}';
        },
      });
      finished = true;
    }),
  );
  const { port } = await listen(server);
  return {
    port,
    errors,
    isFinished: () => finished,
  };
}

/** Sends a GET and collects the body as it arrives. */
async function get(port: number, headers: http.OutgoingHttpHeaders = {}) {
  const req = http.get({ port, host: '127.0.0.1', headers });
  const [res] = (await once(req, 'response')) as [http.IncomingMessage];
  const state = { body: '', ended: false };
  const decoded = res.headers['content-encoding'] === 'gzip' ? res.pipe(createGunzip()) : res;
  decoded.on('data', (chunk: Buffer) => {
    state.body += chunk.toString();
  });
  decoded.on('end', () => {
    state.ended = true;
  });
  decoded.on('error', () => undefined);
  return { req, res, state };
}

describe('streamPayloads', () => {
  it.each<[string, Framing, string, string, string]>([
    [
      'server-sent events',
      EVENT_STREAM,
      ':\n\n',
      'event: next\ndata: {"a":1}\n\n',
      'event: complete\ndata:\n\n',
    ],
    ['JSON lines', JSON_LINES, '', '{"a":1}\n', ''],
    [
      'multipart/mixed',
      MULTIPART,
      '---',
      '\r\nContent-Type: application/json; charset=utf-8\r\n\r\n{"a":1}\r\n---',
      '--\r\n',
    ],
  ])(
    'streamPayloads sends each payload of %s with its delimiter immediately',
    async (_, framing, opening, part, ending) => {
      const source = payloadSource();
      const { port } = await serve(source, { framing });
      const { res, state } = await get(port);
      expect(res.headers).toMatchObject({
        'content-type': framing.contentType,
        'cache-control': 'no-store, no-transform',
        'x-accel-buffering': 'no',
        'x-content-type-options': 'nosniff',
        incremental: '?1',
        vary: 'Accept',
      });
      await until(() => state.body === opening);
      source.push('{"a":1}');
      await until(() => state.body === opening + part);
      source.push('{"a":1}');
      source.end();
      await until(() => state.ended);
      expect(state.body).toBe(opening + part + part + ending);
    },
  );

  it('streamPayloads keeps the Vary that other code has set, and no lifetime or validator', async () => {
    const source = payloadSource();
    const { port } = await serve(source, {
      listener: (run) => (req, res) => {
        for (const name of ['cache-control', 'cdn-cache-control']) res.setHeader(name, 'public, max-age=60');
        res.setHeader('etag', '"1"');
        res.setHeader('vary', 'Origin');
        run(req, res);
      },
    });
    const { res } = await get(port);
    expect(res.headers).toMatchObject({ 'cache-control': 'no-store, no-transform', vary: 'Origin, Accept' });
    for (const name of ['cdn-cache-control', 'etag']) expect(res.headers).not.toHaveProperty(name);
  });

  it('streamPayloads returns the source when the client disconnects between payloads', async () => {
    const source = payloadSource();
    const { port, isFinished } = await serve(source);
    const { req, state } = await get(port);
    source.push('1');
    await until(() => state.body.includes('data: 1'));
    req.destroy();
    await source.returned;
    await until(isFinished);
  });

  it('streamPayloads returns the source when the client disconnects while the next payload is being created', async () => {
    const source = payloadSource();
    const { port, errors, isFinished } = await serve(source);
    const { req } = await get(port);
    req.destroy();
    await source.returned;
    source.push('late');
    await until(isFinished);
    expect(errors).toEqual([]);
  });

  it('streamPayloads reports a failed source and ends the body with its last payload', async () => {
    const source = payloadSource();
    const { port, errors } = await serve(source, { framing: MULTIPART });
    const { state } = await get(port);
    source.fail(new Error('broken'));
    await until(() => state.ended);
    expect(state.body).toMatch(/\r\n\r\n\{"failed":true\}\r\n-----\r\n$/);
    expect(errors).toEqual([new Error('broken')]);
  });

  it('streamPayloads reads no payload ahead of a client that does not read', async () => {
    const source = payloadSource();
    const large = 'x'.repeat(1024 * 1024);
    for (let index = 0; index < 64; index++) source.push(large);
    source.end();
    const { port } = await serve(source, { framing: JSON_LINES });
    const req = http.get({ port, host: '127.0.0.1' });
    const [res] = (await once(req, 'response')) as [http.IncomingMessage];
    res.pause();
    let pulls = -1;
    while (pulls !== source.pulls) {
      pulls = source.pulls;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(pulls).toBeLessThan(64);
    let bytes = 0;
    res.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    res.resume();
    await once(res, 'end');
    expect(bytes).toBe(64 * (large.length + 1));
  });

  it('streamPayloads sends keep-alive messages of formats that have them', async () => {
    const source = payloadSource();
    const { port } = await serve(source, { keepAlive: 5 });
    const { state } = await get(port);
    await until(() => state.body.startsWith(':\n\n:\n\n:\n\n'));
  });

  it('streamPayloads sends uncompressed payloads immediately through compression', async () => {
    const source = payloadSource();
    const app = express().use(compression({ threshold: 0, filter: () => true }));
    const { port } = await serve(source, { listener: (run) => app.use(run) });
    const { res, state } = await get(port, { 'accept-encoding': 'gzip' });
    expect(res.headers['content-encoding']).toBeUndefined();
    source.push('1');
    await until(() => state.body.includes('data: 1'));
  });

  it('streamPayloads flushes each payload when a middleware removes no-transform and compresses', async () => {
    const source = payloadSource();
    const app = express().use(compression({ threshold: 0, filter: () => true }), (_req, res, next) => {
      const { setHeader } = res;
      res.setHeader = (name, value) =>
        setHeader.call(res, name, name === 'cache-control' ? 'no-store' : value) as typeof res;
      next();
    });
    const { port } = await serve(source, { listener: (run) => app.use(run) });
    const { res, state } = await get(port, { 'accept-encoding': 'gzip' });
    expect(res.headers['content-encoding']).toBe('gzip');
    for (const payload of ['1', '2', '3']) {
      source.push(payload);
      await until(() => state.body.endsWith(`data: ${payload}\n\n`));
    }
    source.end();
    await until(() => state.ended);
  });

  it('streamPayloads works over HTTP/2 and returns the source when the stream is closed', async () => {
    const source = payloadSource();
    const server = http2.createServer((_, res) => {
      const options = { framing: EVENT_STREAM, status: 200, payloads: source, keepAlive: 0 };
      void streamPayloads(res as http2.Http2ServerResponse & http.ServerResponse, {
        ...options,
        onError: () => undefined,
      });
    });
    const { url } = await listen(server);
    const client = http2.connect(url);
    const stream = client.request({ ':path': '/' });
    let body = '';
    stream.on('data', (chunk) => {
      body += chunk;
    });
    const [headers] = await once(stream, 'response');
    expect(headers).toMatchObject({ ':status': 200, 'content-type': EVENT_STREAM.contentType });
    source.push('1');
    await until(() => body === ':\n\nevent: next\ndata: 1\n\n');
    stream.close();
    await source.returned;
    client.close();
  });
});
