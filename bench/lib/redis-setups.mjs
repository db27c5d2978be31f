// Redis servers that can fail: a master with a replica behind proxies, the same with Sentinel, and a Redis Cluster.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startProxy } from './redis-faults.mjs';
import { createNode, freePort, inSync, isMaster, isReplicating } from './redis-node.mjs';

/**
 * Milliseconds without a reply after which Sentinel or the cluster replaces a master: during a failover that the run asks
 * for, and at all other times. On a loaded machine a master may not reply for seconds after a restart. A failover then loses
 * events that the run expects.
 */
const FAILOVER_DOWN_TIME = 2000;
const USUAL_DOWN_TIME = 60_000;

/**
 * Starts the servers. `kind` is 'pair', 'sentinel' or 'cluster'. The first faults of `restart` and `stop` hit the master
 * of the key, later ones also other masters.
 */
export async function startSetup(kind, key) {
  const folder = mkdtempSync(join(tmpdir(), 'redis-setup-'));
  const setup = await { pair, sentinel, cluster }[kind](folder, key);
  const { nodes, masters, replicas, owner } = setup;

  /** Kills the master of the key, and resolves when its replica has taken over. */
  async function failOver(resume) {
    const [master, replica] = [masters[owner], replicas[owner]];
    await setup.setDownTime?.(FAILOVER_DOWN_TIME);
    await master.kill();
    resume();
    await setup.promote(replica);
    [masters[owner], replicas[owner]] = [replica, master];
    await master.start(setup.replicaWords(replica));
    await isReplicating(master);
    await setup.failOverEnded?.(replica);
    await setup.setDownTime?.(USUAL_DOWN_TIME);
  }

  return {
    /** The connection of the process with this number: a URL, or options of ioredis. */
    target: setup.target,
    get admin() {
      return masters[owner].admin;
    },
    /** Closes the connections of all processes. Subscribers of a cluster may be connected to a replica. */
    dropConnections: setup.dropConnections ?? (() => Promise.all(nodes.map((node) => node.dropClients()))),
    /** Kills a master with SIGKILL and starts it again. Every event that it confirmed is on its disk. */
    async restart(time, index) {
      const place = (owner + index) % masters.length;
      await masters[place].kill();
      await sleep(time);
      await masters[place].start();
      await isReplicating(replicas[place]);
    },
    async stop(time, index) {
      const master = masters[(owner + index) % masters.length];
      master.signal('SIGSTOP');
      await sleep(time);
      master.signal('SIGCONT');
    },
    /** Lets the replica take over when it has all events. `pause` stops the publisher and returns its `resume`. */
    async failOver(pause) {
      const resume = await pause();
      await inSync(masters[owner], replicas[owner]);
      await failOver(resume);
    },
    /** Lets the replica take over while events are published: it may lack events that were confirmed. */
    failOverHard: () => failOver(() => undefined),
    async close() {
      await setup.close();
      for (const node of nodes) {
        node.admin.disconnect();
        await node.kill();
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function startPair(folder) {
  const [master, replica] = [await createNode(folder, 'a'), await createNode(folder, 'b')];
  await master.start();
  await replica.start(['--replicaof', '127.0.0.1', `${master.port}`]);
  await isReplicating(replica);
  return {
    nodes: [master, replica],
    masters: [master],
    replicas: [replica],
    owner: 0,
    replicaWords: ({ port }) => ['--replicaof', '127.0.0.1', `${port}`],
  };
}

/** The processes connect through proxies, one for each of three processes. */
async function pair(folder) {
  const servers = await startPair(folder);
  const proxies = [];
  for (let i = 0; i < 3; i++) proxies.push(await startProxy(servers.masters[0].port));
  return {
    ...servers,
    target: (process) => `redis://127.0.0.1:${proxies[process].port}`,
    async dropConnections() {
      for (const proxy of proxies) proxy.drop();
    },
    async promote({ admin, port }) {
      await admin.call('REPLICAOF', 'NO', 'ONE');
      for (const proxy of proxies) proxy.retarget(port);
    },
    async close() {
      for (const proxy of proxies) proxy.close();
    },
  };
}

async function sentinel(folder) {
  const servers = await startPair(folder);
  const port = await freePort();
  const config = join(folder, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `sentinel monitor main 127.0.0.1 ${servers.masters[0].port} 1`,
    `sentinel down-after-milliseconds main ${USUAL_DOWN_TIME}`,
    'sentinel failover-timeout main 2000',
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  const child = spawn('redis-server', [config, '--sentinel'], { stdio: 'ignore' });
  process.on('exit', () => child.kill('SIGKILL'));
  const admin = new Redis(port, '127.0.0.1', { enableReadyCheck: false, maxRetriesPerRequest: null });
  admin.on('error', () => undefined);
  const monitored = async () => {
    const words = await admin.call('SENTINEL', 'MASTER', 'main');
    return (name) => words[words.indexOf(name) + 1];
  };
  return {
    ...servers,
    target: () => ({ sentinels: [{ host: '127.0.0.1', port }], name: 'main' }),
    promote: isMaster,
    setDownTime: (time) => admin.call('SENTINEL', 'SET', 'main', 'down-after-milliseconds', time),
    /** Resolves when Sentinel monitors the new master: it gives up a failover whose master is not down any more. */
    async failOverEnded(master) {
      for (;;) {
        const field = await monitored();
        if (field('port') === `${master.port}` && field('flags') === 'master') return;
        await sleep(20);
      }
    },
    async close() {
      admin.disconnect();
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

const MASTERS = 3;
const SLOTS = 16_384;

async function cluster(folder, key) {
  const nodes = [];
  for (let index = 0; index < MASTERS * 2; index++) {
    const bus = await freePort();
    const node = await createNode(folder, `${index}`, [
      ...['--cluster-enabled', 'yes', '--cluster-port', `${bus}`],
      ...['--cluster-config-file', join(folder, `nodes-${index}.conf`)],
      ...['--cluster-node-timeout', `${USUAL_DOWN_TIME}`, '--cluster-replica-validity-factor', '0'],
    ]);
    await node.start();
    nodes.push(node);
    if (index > 0) await node.admin.call('CLUSTER', 'MEET', '127.0.0.1', nodes[0].port, nodes[0].bus);
    node.bus = bus;
  }
  const [masters, replicas] = [nodes.slice(0, MASTERS), nodes.slice(MASTERS)];
  for (const [index, { admin }] of masters.entries()) {
    const bounds = [index, index + 1].map((part) => Math.ceil((part * SLOTS) / MASTERS));
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', bounds[0], bounds[1] - 1);
  }
  const isKnown = async ({ admin }, id) => String(await admin.call('CLUSTER', 'NODES')).includes(id);
  for (const [index, replica] of replicas.entries()) {
    const id = await masters[index].admin.call('CLUSTER', 'MYID');
    while (!(await isKnown(replica, id))) await sleep(20);
    await replica.admin.call('CLUSTER', 'REPLICATE', id);
    await isReplicating(replica);
  }
  const state = async ({ admin }) => String(await admin.call('CLUSTER', 'INFO'));
  const isComplete = async () => {
    for (const node of nodes) while (!(await state(node)).includes('cluster_state:ok')) await sleep(20);
  };
  await isComplete();
  const slot = await masters[0].admin.call('CLUSTER', 'KEYSLOT', key);
  return {
    nodes,
    masters,
    replicas,
    owner: Math.floor((slot * MASTERS) / SLOTS),
    target: () => ({ cluster: nodes.map(({ port }) => ({ host: '127.0.0.1', port })) }),
    promote: isMaster,
    /** A node uses a new timeout for its next decision. A killed node starts with the usual one. */
    async setDownTime(time) {
      const running = nodes.filter(({ admin }) => admin.status === 'ready');
      await Promise.all(running.map(({ admin }) => admin.config('SET', 'cluster-node-timeout', time)));
    },
    /** Resolves when all nodes agree that every slot has a master. */
    failOverEnded: () => isComplete(),
    // The node keeps its role in its file, and learns the new one from the others.
    replicaWords: () => [],
    async close() {},
  };
}
