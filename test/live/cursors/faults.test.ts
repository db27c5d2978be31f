/** @tags once slow */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { root } from '../../tarball.ts';

const FAULTS = [
  'client killed',
  'connections of clients reset',
  'connections to Redis reset',
  'server SIGKILL',
  'server SIGSTOP',
  'deploy with drain',
  'Redis SIGKILL',
  'Redis SIGSTOP',
  'failover to a replica',
  'failover while events are published',
  'Redis loses its data',
];

it.each([
  ['a Redis with a replica', 'pair', 2],
  ['a Redis with a replica and Sentinel', 'sentinel', 1],
  ['a Redis Cluster', 'cluster', 1],
] as const)(
  'clients at two processes with %s receive what was published when any fault happens before any message',
  async (_title, redis, messages) => {
    const args = ['bench/resume-faults.mjs', '--dist', '--clients=20', `--messages=${messages}`];
    const child = spawn(process.execPath, [...args, `--redis=${redis}`], {
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
    const count = messages + 1;
    expect({ code, output }).toEqual({
      code: 0,
      output: expect.stringContaining(
        `${count} losses of data, each reported to all clients; no gap, no duplicate`,
      ),
    });
    for (const name of FAULTS) expect(output).toContain(`${name}: ${count} times`);
  },
  240_000,
);
