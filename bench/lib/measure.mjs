import { median } from './median.mjs';
import { startProcess } from './process.mjs';

/** One load over its contestants, in interleaved rounds. */
export async function measureLoad(topic, load, names, { rounds, scale }) {
  const count = Math.max(load.least ?? load.connections ?? 32, Math.round((load.count ?? 20000) * scale));
  const generator = startProcess('load', { BENCH_TOPIC: topic });
  const servers = new Map();
  const samples = new Map(names.map((name) => [name, []]));
  const open = async (name) => {
    const server = startProcess('server', { BENCH_TOPIC: topic, BENCH_CONTESTANT: name });
    servers.set(name, server);
    const { port } = await server.ask({ ask: 'start' });
    const job = { load: load.name, contestant: name, port };
    await generator.ask({ ...job, ask: 'check' });
    await generator.ask({ ...job, ask: 'load', warming: true, count: load.warmup ?? count });
    return { server, job };
  };
  const shut = async (name) => {
    await servers.get(name)?.ask({ ask: 'stop' });
    await servers.get(name)?.stop();
    servers.delete(name);
  };
  try {
    const opened = new Map();
    if (!load.fresh) for (const name of names) opened.set(name, await open(name));
    for (let round = 0; round < rounds; round++) {
      for (const name of names) {
        const { server, job } = opened.get(name) ?? (await open(name));
        samples.get(name).push(await sample(server, generator, { ...job, ask: 'load', count }));
        if (load.fresh) await shut(name);
      }
    }
    for (const name of [...servers.keys()]) await shut(name);
  } finally {
    await Promise.all([...servers.values(), generator].map((child) => child.stop()));
  }
  return names.map((name) => ({ name, ...summary(samples.get(name)) }));
}

async function sample(server, generator, job) {
  const before = await server.ask({ ask: 'usage' });
  const { operations, seconds, ...figures } = await generator.ask(job);
  const after = await server.ask({ ask: 'usage' });
  return {
    cpu: (after.cpu - before.cpu) / operations,
    perSecond: operations / seconds,
    rssMiB: after.rss / 2 ** 20,
    peakRssMiB: after.peakRss / 2 ** 20,
    ...figures,
  };
}

/** Medians of every figure, and the least CPU time. */
function summary(rounds) {
  const medians = {};
  for (const key of Object.keys(rounds[0])) medians[key] = median(rounds.map((round) => round[key]));
  return {
    ...medians,
    cpuMin: Math.min(...rounds.map((round) => round.cpu)),
    rounds: rounds.map((round) => round.cpu),
  };
}
