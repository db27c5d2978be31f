import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './programs.ts';

/** A Sentinel that a test has started. */
export interface Sentinel {
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts a Sentinel, on a free port unless it is given, for a master with the name `main`. */
export async function startSentinel(master: number, given?: number): Promise<Sentinel> {
  const port = given ?? (await freePort());
  const folder = mkdtempSync(join(tmpdir(), 'espalier-sentinel-'));
  const config = join(folder, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `sentinel monitor main 127.0.0.1 ${master} 1`,
    'sentinel down-after-milliseconds main 1000',
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  const child = spawn('redis-server', [config, '--sentinel'], { stdio: 'ignore' });
  const exited = once(child, 'exit');
  return {
    port,
    async stop() {
      child.kill('SIGKILL');
      await exited;
      rmSync(folder, { recursive: true });
    },
  };
}
