// Runs one scenario in a process whose warnings and unhandled rejections a test can see: `child.ts <scenario> <redis URL>`.
import { register } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createPubSub, redis } from '../../middleware/pubsub.ts';
import { startProxy } from './proxy.ts';

interface Events {
  tick: number;
}

const [scenario, url = ''] = process.argv.slice(2);
/** Five equal errors with the default of `onError`, and five with `false`. */
async function log(admin: Redis): Promise<void> {
  const all = [
    createPubSub<Events>({ transport: url }),
    createPubSub<Events>({ transport: url, onError: false }),
  ];
  await Promise.all(all.map((events) => events.ready('tick')));
  for (let count = 0; count < 5; count++) await admin.publish('espalier:tick', '{not json');
  await Promise.all(all.map((events) => events.ready('tick')));
  await Promise.all(all.map((events) => events.close()));
}

/** Closes while a subscription is renewed after a lost connection. */
async function close(): Promise<void> {
  const proxy = await startProxy(url);
  const events = createPubSub<Events>({ transport: proxy.url, onError: () => undefined });
  events.subscribe('tick');
  await events.ready('tick');
  proxy.stallAt('subscribe');
  proxy.drop();
  await pause(500);
  await events.close();
  await proxy.close();
}

/** More subscribers of one topic than an EventTarget accepts without a warning. */
async function listeners(): Promise<void> {
  const events = createPubSub<Events>();
  const streams = Array.from({ length: 50 }, () => events.subscribe('tick'));
  await events.publish('tick', 1);
  for (const stream of streams) await stream.next();
  await events.close();
}

/** Writes the timers that keep the process alive after a dropped message was read, and after the close. */
async function timers(admin: Redis): Promise<void> {
  const hasTimer = (): boolean => process.getActiveResourcesInfo().includes('Timeout');
  const writeTimers = async (): Promise<void> => {
    // A command that waits for its reply has one.
    for (let turn = 0; turn < 100 && hasTimer(); turn++) await pause(10, undefined, { ref: false });
    if (hasTimer()) console.error('Timeout');
  };
  const events = createPubSub<Events>({ transport: redis(url, { heartbeat: 200 }), history: {} });
  const stream = events.subscribe('tick');
  await events.ready('tick');
  const newest = '{espalier:tick}:newest';
  const id = await admin.xadd('{espalier:tick}:events', '*', 'p', (await admin.get(newest)) ?? '', 'e', '1');
  await admin.set(newest, id as string);
  await stream.next();
  await writeTimers();
  await events.close();
  await writeTimers();
}

/** Subscribes while a hook of the module loader, as tracers have one, delays each import of the client. */
async function loader(): Promise<void> {
  const hook = `export async function resolve(specifier, context, next) {
    if (specifier === 'redis') await new Promise((resolve) => setTimeout(resolve, 300));
    return next(specifier, context);
  }`;
  register(`data:text/javascript,${encodeURIComponent(hook)}`);
  const events = createPubSub<Events>({ transport: url, history: {} });
  events.subscribe('tick');
  await events.ready('tick');
  await events.close();
}

async function main(): Promise<void> {
  if (scenario === 'loader') return loader();
  if (scenario === 'listeners') return listeners();
  if (scenario === 'close') return close();
  const admin = new Redis(url);
  await (scenario === 'timers' ? timers(admin) : log(admin));
  await admin.quit();
}

void main();
