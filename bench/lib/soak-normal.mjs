import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { WebSocket } from 'ws';
import { featureKinds } from './soak-normal-features.mjs';
import { startStreams } from './soak-normal-streams.mjs';

const SUBSCRIBERS = 50;

/** Sends the requests of ordinary clients at a fixed rate. Returns the function that stops them and returns latencies and faults. */
export function startNormalTraffic(port, { isIncremental }) {
  const agent = new Agent({ keepAlive: true, maxSockets: 20 });
  const times = {};
  const record = (kind, time) => {
    times[kind] ??= [];
    times[kind].push(time);
  };
  const faults = [];
  const fault = (text) => stopped || (faults.length < 10 && faults.push(text));
  const tasks = new Set();
  let stopped = false;

  async function send({ path, method = 'GET', headers = {}, body }) {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const req = request({
      port,
      host: '127.0.0.1',
      agent,
      path,
      method,
      headers: { ...length, ...headers },
    }).end(body);
    const closed = (error) => {
      // The server may close an idle connection while the client reuses it.
      if (error.code === 'ECONNRESET' && req.reusedSocket) return undefined;
      throw error;
    };
    const responded = await once(req, 'response').catch(closed);
    if (responded === undefined) return await send({ path, method, headers, body });
    const [res] = responded;
    const chunks = [];
    for await (const chunk of res) chunks.push(chunk);
    return { status: res.statusCode, headers: res.headers, text: Buffer.concat(chunks).toString() };
  }
  const query = (text) =>
    send({
      path: '/graphql',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: text }),
    });
  let tag;
  const kinds = {
    static: async () => {
      const { status, headers } = await send({
        path: '/static/small.css',
        headers: tag === undefined ? {} : { 'if-none-match': tag },
      });
      if (status !== 200 && status !== 304) fault(`static ${status}`);
      tag = headers.etag;
    },
    query: async () => {
      const { text } = await query('{ hello a { id b { hello } } }');
      if (text !== '{"data":{"hello":"world","a":{"id":1,"b":{"hello":"world"}}}}')
        fault(`query ${text.slice(0, 100)}`);
    },
    long: async () => {
      const { text } = await query('{ lines(count: 2000) }');
      if (JSON.parse(text).data.lines.length !== 2000) fault(`long ${text.slice(0, 100)}`);
    },
    upload: async () => {
      const form = new FormData();
      form.set('operations', '{"query":"mutation ($f: Upload) { size(file: $f) }","variables":{"f":null}}');
      form.set('map', '{"0":["variables.f"]}');
      form.set('0', new Blob([Buffer.alloc(300_000, 'y')]), 'a.txt');
      const response = new Response(form);
      const { text } = await send({
        path: '/graphql',
        method: 'POST',
        headers: { 'content-type': response.headers.get('content-type') },
        body: Buffer.from(await response.arrayBuffer()),
      });
      if (text !== '{"data":{"size":300000}}') fault(`upload ${text.slice(0, 100)}`);
    },
    ...featureKinds({ send, fault, isIncremental }),
  };
  const start = (kind) => {
    const started = performance.now();
    const task = kinds[kind]()
      .then(() => record(kind, performance.now() - started))
      .catch((error) => stopped || fault(`${kind} ${error}`))
      .finally(() => tasks.delete(task));
    tasks.add(task);
  };
  const timers = [
    setInterval(start, 10, 'static'),
    setInterval(start, 10, 'query'),
    setInterval(start, 50, 'long'),
    ...Object.keys(kinds)
      .slice(3)
      .map((kind) => setInterval(start, 100, kind)),
  ];
  const sockets = Array.from({ length: SUBSCRIBERS }, (_, index) => subscribe(index));
  const stopStreams = startStreams({ port, fault, record });

  /** Subscribes to numbers that increase by one every 20 ms. */
  function subscribe(index) {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws');
    const field = index % 2 === 0 ? 'tick' : 'shared';
    let last;
    let time;
    socket.on('open', () => socket.send('{"type":"connection_init"}'));
    socket.on('message', (data) => {
      const message = JSON.parse(data);
      if (message.type === 'connection_ack') {
        socket.send(
          JSON.stringify({ id: '1', type: 'subscribe', payload: { query: `subscription { ${field} }` } }),
        );
      } else if (message.type === 'next') {
        const value = message.payload.data[field];
        if (last !== undefined && value !== last + 1) fault(`event ${value} after ${last}`);
        const now = performance.now();
        // The delay of an event: the time since the previous one beyond the interval of 20 ms.
        if (time !== undefined) record('event', Math.max(0, now - time - 20));
        [last, time] = [value, now];
      } else if (message.type !== 'ping') fault(`socket ${data}`);
    });
    socket.on('close', (code, reason) => stopped || fault(`socket closed: ${code} ${reason}`));
    socket.on('error', (error) => stopped || fault(`socket ${error}`));
    return socket;
  }

  return async () => {
    for (const timer of timers) clearInterval(timer);
    await Promise.all(tasks);
    stopped = true;
    stopStreams();
    for (const socket of sockets) socket.close();
    agent.destroy();
    return {
      faults,
      latencies: Object.fromEntries(Object.entries(times).map(([kind, list]) => [kind, summary(list)])),
    };
  };
}

function summary(list) {
  const sorted = Float64Array.from(list).sort();
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}
