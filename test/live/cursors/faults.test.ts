/** @tags once slow */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { root } from '../../tarball.ts';

/** What Redis does not notice, whatever it consists of. */
const OF_SERVERS = [
  'client killed',
  'connections of clients reset',
  'server SIGKILL',
  'server SIGSTOP',
  'deploy with drain',
];
const OF_REDIS = [
  'connections to Redis reset',
  'Redis SIGKILL',
  'Redis SIGSTOP',
  'failover to a replica',
  'failover while events are published',
  'Redis loses its data',
];

it.each([
  ['a Redis with a replica', 'pair', [...OF_SERVERS, ...OF_REDIS]],
  ['a Redis with a replica and Sentinel', 'sentinel', OF_REDIS],
  ['a Redis Cluster', 'cluster', OF_REDIS],
] as const)(
  'clients at two processes with %s receive what was published when any fault happens before any message',
  async (_title, redis, faults) => {
    const args = ['bench/resume-faults.mjs', '--dist', '--clients=20', '--messages=1'];
    const child = spawn(process.execPath, [...args, `--redis=${redis}`, `--faults=${faults}`], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (text) => {
        output += text;
      });
    }
    const [code] = await once(child, 'exit');
    // Before the first message, and before the second.
    const count = 2;
    expect({ code, output }).toEqual({
      code: 0,
      output: expect.stringContaining(
        `${count} losses of data, each reported to all clients; no gap, no duplicate`,
      ),
    });
    for (const name of faults) expect(output).toContain(`${name}: ${count} times`);
  },
  240_000,
);
