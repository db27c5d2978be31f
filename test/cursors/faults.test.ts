import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { root } from '../tarball.ts';

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
  'Redis loses its data',
];

it('clients at two processes receive what was published when any fault happens before any message', async () => {
  const args = ['bench/resume-faults.mjs', '--dist', '--clients=20', '--messages=2'];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text) => {
      output += text;
    });
  }
  const [code] = await once(child, 'exit');
  expect({ code, output }).toEqual({
    code: 0,
    output: expect.stringContaining('3 losses of data, each reported to all clients; no gap, no duplicate'),
  });
  for (const name of FAULTS) expect(output).toContain(`${name}: 3 times`);
}, 240_000);
