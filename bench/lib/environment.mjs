import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem, type } from 'node:os';

/** The Node that runs the servers. */
export const serverNode = process.env.BENCH_NODE ?? process.execPath;

/** Date, machine and versions of a run. */
export function environment(topic) {
  const packages = { espalier: '' };
  for (const name of ['espalier', ...(topic.packages ?? [])]) packages[name] = versionOf(name);
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: {
      cpu: `${cpus()[0]?.model ?? 'unknown'}, ${availableParallelism()} cores`,
      memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
      system: `${type()} ${release()}`,
    },
    node: execFileSync(serverNode, ['--version'], { encoding: 'utf8' }).trim(),
    packages,
  };
}

function versionOf(name) {
  if (name === 'graphql' && process.env.BENCH_GRAPHQL === '17') return versionOf('graphql17');
  const file = new URL(`../node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')).version;
}
