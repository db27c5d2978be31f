// A redis-server, and TCP proxies to it, that can fail in all the ways in which Redis and networks do.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from './redis-node.mjs';

const USER = ['app', 'on', '>secret', '~*', '&*', '+@all'];

/** Starts a redis-server with the user `app`; its data is lost when it stops. */
export async function startServer() {
  const port = await freePort();
  let child;
  async function start() {
    const words = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--user'];
    child = spawn('redis-server', [...words.map(String), ...USER]);
    for await (const text of child.stdout) if (String(text).includes('Ready to accept')) break;
    child.stdout.resume();
  }
  async function stop(signal) {
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }
  await start();
  const admin = new Redis(port, '127.0.0.1', { maxRetriesPerRequest: null });
  admin.on('error', () => undefined);
  return {
    port,
    admin,
    start,
    stop,
    signal: (name) => child.kill(name),
    close: async () => {
      admin.disconnect();
      await stop('SIGKILL');
    },
  };
}

/** A TCP proxy to a port that can stall or drop its connections, or delay replies. */
export async function startProxy(port) {
  const lines = new Set();
  let stalled = false;
  let target = port;
  let latency = 0;
  const server = net.createServer((client) => {
    const upstream = net.connect(target, '127.0.0.1');
    const line = { stalled, sockets: [client, upstream] };
    lines.add(line);
    for (const [from, to] of [line.sockets, [upstream, client]]) {
      from.on('data', (chunk) => {
        if (line.stalled) return;
        if (latency > 0 && from === upstream) setTimeout(() => to.write(chunk), latency);
        else to.write(chunk);
      });
      from.on('error', () => undefined);
      from.on('close', () => {
        lines.delete(line);
        to.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const drop = () => {
    for (const { sockets } of lines) sockets[0].resetAndDestroy();
  };
  return {
    port: server.address().port,
    drop,
    /** Connects to another port from now on. */
    retarget(other) {
      target = other;
      drop();
    },
    stall() {
      stalled = true;
      for (const line of lines) line.stalled = true;
    },
    heal() {
      stalled = false;
    },
    /** Passes on replies this number of milliseconds later. */
    delay(milliseconds) {
      latency = milliseconds;
    },
    close() {
      drop();
      server.close();
    },
  };
}

/** The faults by name. Each returns when it is over; recovery takes longer. `pick` and `wait` are random. */
export function createFaults(redis, proxies, { pick, wait }) {
  const { admin } = redis;
  const restart = async (signal) => {
    await redis.stop(signal);
    await sleep(wait(50, 2000));
    await redis.start();
  };
  const user = (...rules) => admin.call('ACL', 'SETUSER', 'app', ...rules);
  return {
    'kill -9 and restart with empty data': () => restart('SIGKILL'),
    'SIGTERM and restart with empty data': () => restart('SIGTERM'),
    async SIGSTOP() {
      redis.signal('SIGSTOP');
      await sleep(wait(100, 4000));
      redis.signal('SIGCONT');
    },
    async 'stalled proxy'() {
      const proxy = pick(proxies);
      proxy.stall();
      await sleep(wait(100, 4000));
      proxy.heal();
    },
    async 'dropped connections'() {
      pick(proxies).drop();
    },
    'CLIENT KILL TYPE pubsub': () => admin.client('KILL', 'TYPE', 'pubsub', 'SKIPME', 'yes'),
    'CLIENT KILL TYPE normal': () => admin.client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
    async 'CLIENT PAUSE'() {
      const time = Math.round(wait(100, 3000));
      await admin.client('PAUSE', time, pick(['WRITE', 'ALL']));
      await sleep(time);
    },
    async 'ACL without channels'() {
      await user('resetchannels');
      await sleep(wait(100, 2000));
      await user('allchannels');
    },
    async 'changed password'() {
      await user('resetpass', '>other');
      await admin.client('KILL', 'USER', 'app');
      await sleep(wait(100, 2000));
      await user('resetpass', '>secret');
    },
  };
}
