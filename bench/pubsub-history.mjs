// The cost of `history` in Redis: publishes with and without it, a replay of 1 000 events to 1 000 streams, and the check of
// 1 000 idle topics.
//   node pubsub-history.mjs --rounds=5
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { given } from './lib/arguments.mjs';
import { installEspalier } from './lib/install-espalier.mjs';
import { median } from './lib/median.mjs';
import { startServer } from './lib/redis-faults.mjs';

const EVENTS = 1000;
const STREAMS = 1000;
const PAYLOAD = { id: 0, name: 'an event for each user' };

if (process.env.HISTORY_REDIS !== undefined) await measure(process.env.HISTORY_REDIS);
else await start(Number(given('rounds', 5)));

async function start(rounds) {
  installEspalier();
  const redis = await startServer();
  const script = fileURLToPath(import.meta.url);
  const child = fork(script, [`${rounds}`], {
    env: { ...process.env, HISTORY_REDIS: `redis://app:secret@127.0.0.1:${redis.port}` },
  });
  const [code] = await once(child, 'exit');
  await redis.close();
  process.exitCode = code;
}

async function measure(url) {
  const rounds = Number(process.argv[2]);
  const { createPubSub, redis } = await import('espalier/pubsub');
  const plain = createPubSub({ transport: redis(url, { prefix: 'plain:' }) });
  const recorded = createPubSub({
    transport: redis(url, { prefix: 'recorded:' }),
    history: { length: EVENTS },
  });
  const streams = [plain, recorded].map((events) => events.subscribe('event'));
  await Promise.all([plain.ready('event'), recorded.ready('event')]);
  const cursors = [];
  for (const stream of streams) void drain(stream, cursors);

  const loads = {
    'one after the other': async (events) => {
      for (let sent = 0; sent < 2000; sent++) await events.publish('event', PAYLOAD);
    },
    '50 at a time': async (events) => {
      for (let sent = 0; sent < 10_000; sent += 50)
        await Promise.all(Array.from({ length: 50 }, () => events.publish('event', PAYLOAD)));
    },
  };
  for (const [name, load] of Object.entries(loads)) {
    const ratios = { time: [], cpu: [] };
    for (let round = 0; round <= rounds; round++) {
      const [without, withHistory] = [await timed(() => load(plain)), await timed(() => load(recorded))];
      if (round === 0) continue;
      ratios.time.push(withHistory.time / without.time);
      ratios.cpu.push(withHistory.cpu / without.cpu);
    }
    console.log(
      `publish, ${name}: history ÷ none ${median(ratios.time).toFixed(2)} in time, ${median(ratios.cpu).toFixed(2)} in CPU time of the process`,
    );
  }

  await new Promise((resolve) => setTimeout(resolve, 500));
  const after = cursors.at(-1 - EVENTS);
  const replays = [];
  for (let round = 0; round <= rounds; round++) {
    // Another process than the publisher: nothing is cached.
    const reader = createPubSub({
      transport: redis(url, { prefix: 'recorded:' }),
      history: { length: EVENTS },
    });
    await reader.ready('event');
    const { time, cpu } = await timed(() =>
      Promise.all(
        Array.from({ length: STREAMS }, async () => {
          const stream = reader.subscribe('event', { after });
          for (let count = 0; count < EVENTS; count++) await stream.next();
        }),
      ),
    );
    if (round > 0) replays.push({ time, cpu });
    await reader.close();
  }
  const time = median(replays.map((replay) => replay.time));
  const cpu = median(replays.map((replay) => replay.cpu));
  console.log(
    `replay of ${EVENTS} events to ${STREAMS} streams: ${time.toFixed(0)} ms, ${((cpu * 1000) / EVENTS / STREAMS).toFixed(2)} µs of CPU time per event and stream`,
  );
  await Promise.all([plain.close(), recorded.close()]);
  await measureIdleTopics({ createPubSub, redis }, url);
  process.disconnect();
}

/** Prints the CPU time per heartbeat with idle topics. More heartbeats than by default make it measurable. */
async function measureIdleTopics({ createPubSub, redis }, url) {
  const [heartbeat, heartbeats] = [500, 20];
  const costs = [];
  for (const history of [undefined, { length: EVENTS }]) {
    const events = createPubSub({ transport: redis(url, { prefix: 'idle:', heartbeat }), history });
    const topics = Array.from({ length: STREAMS }, (_, index) => `topic ${index}`);
    for (const topic of topics) events.subscribe(topic);
    await Promise.all(topics.map((topic) => events.ready(topic)));
    const pause = (count) => new Promise((resolve) => setTimeout(resolve, count * heartbeat));
    await pause(4);
    costs.push((await timed(() => pause(heartbeats))).cpu / heartbeats);
    await events.close();
  }
  const [without, withHistory] = costs;
  console.log(
    `${STREAMS} idle topics: ${withHistory.toFixed(1)} ms of CPU time per heartbeat, ${without.toFixed(1)} ms without a history`,
  );
}

async function drain(stream, cursors) {
  for (;;) {
    const { done, cursor } = await stream.next();
    if (done) return;
    if (cursor !== undefined) cursors.push(cursor);
  }
}

/** Wall time and CPU time of this process, in milliseconds. */
async function timed(run) {
  const cpu = process.cpuUsage();
  const began = performance.now();
  await run();
  const { user, system } = process.cpuUsage(cpu);
  return { time: performance.now() - began, cpu: (user + system) / 1000 };
}
