// Runs in a plain Node process, without Jest around it, and prints what it saw as JSON.
import { once } from 'node:events';
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from '../../middleware/server.ts';
import type { App } from './behaviours/behaviour.ts';

const same = new Function('a', 'b', 'return %HaveSameMap(a, b)') as (a: object, b: object) => boolean;
const fast = new Function('a', 'return %HasFastProperties(a)') as (a: object) => boolean;

/** Serves requests of an app, and reports how V8 and Express see them. */
async function observe(app: App, make: (app: App) => http.Server): Promise<unknown> {
  const bornRight: boolean[] = [];
  const seen: { req: object; res: object }[] = [];
  app.get('/', (req, res) => {
    seen.push({ req, res });
    res.send('words');
  });
  const server = make(app);
  server.prependListener('request', (req, res) => {
    bornRight.push(Object.getPrototypeOf(req) === app.request && Object.getPrototypeOf(res) === app.response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  // The first requests may still be finding their final shape.
  for (let count = 0; count < 50; count++) await (await fetch(`http://127.0.0.1:${port}/`)).text();
  server.close();
  server.closeAllConnections();
  const [one, two] = seen.slice(-2) as [(typeof seen)[0], (typeof seen)[0]];
  return {
    bornRight: bornRight.every(Boolean),
    sharedClasses: [same(one.req, two.req), same(one.res, two.res)],
    fastProperties: [fast(one.req), fast(one.res)],
  };
}

const reported: Record<string, unknown> = {};
for (const name of ['express', 'express4']) {
  const { default: express } = (await import(name)) as { default: () => App };
  reported[`${name}, createServer`] = await observe(express(), (app) => createServer(app));
  reported[`${name}, plain`] = await observe(express(), (app) => http.createServer(app));
}
process.stdout.write(JSON.stringify(reported));
