// The process of the load generator: one at a time, on its own core.
import assert from 'node:assert/strict';
import { httpLoad, once } from './http-load.mjs';
import { replyToMessages } from './reply.mjs';

const { topic } = await import(process.env.BENCH_TOPIC);

replyToMessages(async ({ ask, load: name, contestant, port, count, warming }) => {
  const load = topic.loads.find((candidate) => candidate.name === name);
  if (ask === 'check') return load.drive === undefined ? check(load, contestant, port) : {};
  const began = process.hrtime.bigint();
  const figures =
    load.drive === undefined
      ? await httpLoad(load, port, count)
      : await load.drive({ port, count, warming, contestant });
  return { seconds: Number(process.hrtime.bigint() - began) / 1e9, ...figures };
});

async function check(load, contestant, port) {
  const requests = typeof load.requests === 'function' ? [load.requests(0), load.requests(1)] : load.requests;
  for (const request of requests.slice(0, 4)) {
    const response = await once(port, request);
    const where = `${contestant}, ${load.name}, ${request.path}`;
    const { status = 200, body, headers = {} } = load.expect ?? {};
    assert.equal(response.status, status, `${where}: status; ${response.body.subarray(0, 200)}`);
    if (body !== undefined) assert.equal(response.body.compare(Buffer.from(body)), 0, `${where}: body`);
    for (const [header, value] of Object.entries(headers)) {
      assert.equal(response.headers[header], value, `${where}: ${header}`);
    }
    load.check?.(response, contestant);
  }
  return {};
}
