import { once } from 'node:events';
import { Agent, request } from 'node:http';

const STREAMS = 5;
const EVENTS = { accept: 'text/event-stream' };
const MULTIPART = { accept: 'multipart/mixed;subscriptionSpec=1.0' };
const QUERY = 'subscription { tick }';
/** Milliseconds for which the history of the server stores an event. */
const HISTORY = 200 * 20;

/** Subscribes to numbers that increase by one in all kinds of event streams. Returns the function that ends them. */
export function startStreams({ port, fault, record }) {
  const agent = new Agent({ keepAlive: false });
  const open = new Set();
  let stopped = false;

  async function send({ method = 'GET', path = '/graphql', headers = {}, body }) {
    const req = request({ port, host: '127.0.0.1', agent, method, path, headers });
    open.add(req);
    req.on('close', () => open.delete(req));
    req.end(body && JSON.stringify(body));
    const [res] = await once(req, 'response');
    res.on('error', () => undefined);
    return { req, res };
  }
  const post = (body, headers) =>
    send({ method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });
  async function _textOf(sent) {
    const { res } = await sent;
    let text = '';
    for await (const chunk of res) text += chunk;
    return { status: res.statusCode, text };
  }

  /** Checks that numbers increase by one, and records the delay of each. */
  function createCounter(kind) {
    const counter = { last: undefined, time: undefined };
    counter.add = (value) => {
      if (counter.last !== undefined && value !== counter.last + 1)
        fault(`${kind} ${value} after ${counter.last}`);
      const now = performance.now();
      if (counter.time !== undefined) record(kind, Math.max(0, now - counter.time - 20));
      [counter.last, counter.time] = [value, now];
    };
    return counter;
  }

  /** Calls `onResult` for the JSON text of each message. */
  async function read({ res }, onResult) {
    let rest = '';
    res.setEncoding('utf8');
    for await (const chunk of res) {
      const parts = (rest + chunk).split('\n');
      rest = parts.pop();
      for (const line of parts) {
        const text = line.replace(/^data: /, '').trim();
        if (text.startsWith('{') && text.length > 2) onResult(JSON.parse(text));
      }
    }
  }

  async function distinct() {
    const counter = createCounter('sse');
    const sent = await send({ path: `/graphql?query=${encodeURIComponent(QUERY)}`, headers: EVENTS });
    await read(sent, ({ data }) => counter.add(data.tick));
    throw new Error('the stream has ended');
  }

  async function multipart() {
    const counter = createCounter('multipart');
    await read(await post({ query: QUERY }, MULTIPART), ({ payload }) => counter.add(payload.data.tick));
    throw new Error('the stream has ended');
  }

  /** Closes its stream now and then, and continues after its last event. */
  async function resuming(index) {
    const counter = createCounter('resuming');
    let after = null;
    while (!stopped) {
      const extensions = encodeURIComponent(JSON.stringify({ after }));
      const path = `/graphql?query=${encodeURIComponent(QUERY)}&extensions=${extensions}`;
      const sent = await send({ path, headers: { ...EVENTS, 'x-user': `user ${index}` } });
      counter.time = undefined;
      const timer = setTimeout(() => sent.req.destroy(), 200 + Math.random() * 1500);
      const opened = performance.now();
      await read(sent, ({ data, errors, extensions: more }) => {
        if (errors !== undefined) fault(`resuming ${JSON.stringify(errors)}`);
        else if (data !== null) counter.add(data.tick);
        after = more?.cursor ?? after;
      }).catch((error) => sent.req.destroyed || fault(`resuming ${error}`));
      clearTimeout(timer);
      if (performance.now() - opened > HISTORY) return;
    }
  }

  for (const [name, run] of Object.entries({ distinct, multipart, resuming })) {
    for (let index = 0; index < STREAMS; index++) {
      run(index).catch((error) => stopped || fault(`${name} stream: ${error}`));
    }
  }
  return () => {
    stopped = true;
    for (const req of open) req.destroy();
    agent.destroy();
  };
}
