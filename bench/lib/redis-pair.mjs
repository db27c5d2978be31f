// Two redis-servers: a master whose data survives a crash, and its replica, which can take over.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

/** Starts a master and a replica. `onMaster` is called with the port of each new master. */
export async function startPair(onMaster) {
  const folder = mkdtempSync(join(tmpdir(), 'redis-pair-'));
  const nodes = [await createNode(folder, 'a'), await createNode(folder, 'b')];
  let [master, replica] = nodes;
  for (const node of nodes) await node.start();
  await replicate();

  async function replicate() {
    await replica.admin.call('REPLICAOF', '127.0.0.1', `${master.port}`);
    while (!/master_link_status:up/.test(await replica.admin.info('replication'))) await sleep(20);
  }

  /** Resolves when the replica has all data of the master. */
  async function inSync() {
    for (;;) {
      const [here, there] = await Promise.all(nodes.map(({ admin }) => admin.info('replication')));
      const [a, b] = [here, there].map((text) => /master_repl_offset:(\d+)/.exec(text)?.[1]);
      if (a === b) return;
      await sleep(5);
    }
  }

  return {
    get admin() {
      return master.admin;
    },
    get port() {
      return master.port;
    },
    signal: (name) => master.signal(name),
    /** Kills the master with SIGKILL and starts it again. Every event that it confirmed is on its disk. */
    async restart(time) {
      await master.kill();
      await sleep(time);
      await master.start();
      await replicate();
    },
    /** Kills the master, and lets the replica take over. `isReady` resolves when nothing is being published. */
    async failOver(isReady) {
      const resume = await isReady();
      await inSync();
      await master.kill();
      resume();
      [master, replica] = [replica, master];
      await master.admin.call('REPLICAOF', 'NO', 'ONE');
      onMaster(master.port);
      await replica.start();
      await replicate();
    },
    async close() {
      for (const node of nodes) {
        node.admin.disconnect();
        await node.kill();
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function createNode(folder, name) {
  const port = await freePort();
  const admin = new Redis(port, '127.0.0.1', { lazyConnect: true, maxRetriesPerRequest: null });
  admin.on('error', () => undefined);
  let child;
  return {
    port,
    admin,
    signal: (signal) => child.kill(signal),
    async start() {
      const options = {
        port,
        bind: '127.0.0.1',
        dir: folder,
        save: '',
        appendonly: 'yes',
        appendfsync: 'always',
        appenddirname: `aof-${name}`,
        'repl-diskless-sync-delay': 0,
      };
      child = spawn(
        'redis-server',
        Object.entries(options).flatMap(([key, value]) => [`--${key}`, `${value}`]),
      );
      for await (const text of child.stdout) if (String(text).includes('Ready to accept')) break;
      child.stdout.resume();
    },
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

export async function freePort() {
  const probe = net.createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}
