// A redis-server whose data survives a crash.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

/** Prepares a server on a free port, with its files in a folder. `words` are more arguments of redis-server. */
export async function createNode(folder, name, words = []) {
  const port = await freePort();
  const admin = new Redis(port, '127.0.0.1', { lazyConnect: true, maxRetriesPerRequest: null });
  admin.on('error', () => undefined);
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
  let child;
  // Stops Redis also when the run has failed.
  process.on('exit', () => child?.kill('SIGKILL'));
  return {
    port,
    admin,
    signal: (signal) => child.kill(signal),
    /** `more` are further arguments for this start only. */
    async start(more = []) {
      const own = Object.entries(options).flatMap(([key, value]) => [`--${key}`, `${value}`]);
      child = spawn('redis-server', [...own, ...words, ...more]);
      for await (const text of child.stdout) if (String(text).includes('Ready to accept')) break;
      child.stdout.resume();
    },
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
    /** Closes all connections of clients, but not those of replicas. */
    async dropClients() {
      for (const type of ['normal', 'pubsub']) await admin.client('KILL', 'TYPE', type, 'SKIPME', 'yes');
    },
  };
}

/** Resolves when a node is connected to its master. */
export async function isReplicating({ admin }) {
  while (!/master_link_status:up/.test(await admin.info('replication'))) await sleep(20);
}

/** Resolves when a node is a master. */
export async function isMaster({ admin }) {
  while ((await admin.role())[0] !== 'master') await sleep(20);
}

/** Resolves when two nodes have the same data. */
export async function inSync(...nodes) {
  for (;;) {
    const texts = await Promise.all(nodes.map(({ admin }) => admin.info('replication')));
    const [a, b] = texts.map((text) => /master_repl_offset:(\d+)/.exec(text)?.[1]);
    if (a === b) return;
    await sleep(5);
  }
}

export async function freePort() {
  const probe = net.createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}
