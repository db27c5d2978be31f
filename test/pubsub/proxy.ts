import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { until } from '../until.ts';

/** A TCP proxy to Redis that can behave like a network partition. */
export interface StallingProxy {
  readonly url: string;
  /** Drops all bytes from now on, of open and of new connections, without closing them. */
  stall(): void;
  /** Closes the open connections, and new ones after they are accepted, like a load balancer without a server. */
  refuse(): void;
  /** The number of new connections that were closed. */
  refused(): number;
  /** Lets new connections through; stalled connections stay stalled, as after a deleted NAT entry. */
  heal(): void;
  /** Closes the open connections. */
  drop(): void;
  /** Stops reading from the open connections of clients, so that the kernel keeps what they send. */
  pause(): void;
  /** Reads again. Resolves when these connections are closed, which their clients have given up. */
  resume(): Promise<void>;
  /** Passes on the replies this number of milliseconds later. */
  delay(milliseconds: number): void;
  /** Drops all bytes of a connection from the moment it sends a command. */
  stallAt(command: string): void;
  /** Keeps what the clients send, from the first chunk that contains a command. */
  hold(command: string): HeldChunks;
  close(): Promise<void>;
}

/** Chunks that a proxy has not sent to Redis yet. */
interface HeldChunks {
  /** Resolves when this number of chunks waits. */
  arrived(count: number): Promise<void>;
  /** Sends the first chunk that waits. */
  sendFirst(): void;
  /** Sends all chunks that wait, and later ones immediately. */
  sendAll(): void;
}

interface Holding {
  readonly command: string;
  readonly chunks: (() => void)[];
}

/** Some clients write commands in upper case. A byte is a character. */
const lowerCase = (chunk: Buffer): string => chunk.toString('latin1').toLowerCase();

/** The number of bytes before the command that starts the hold. */
function freeBytes(chunk: Buffer, { command, chunks }: Holding): number {
  if (chunks.length > 0) return 0;
  const at = lowerCase(chunk).indexOf(command);
  return at === -1 ? chunk.length : chunk.lastIndexOf('*', at);
}

export async function startProxy(redisUrl: string): Promise<StallingProxy> {
  const port = Number(new URL(redisUrl).port);
  let stalled = false;
  let refusing = false;
  let refused = 0;
  let stallingCommand: string | undefined;
  let holding: Holding | undefined;
  let latency = 0;
  const lines = new Set<{ unresponsive: boolean; sockets: net.Socket[] }>();
  const paused = new Set<{ unresponsive: boolean; sockets: net.Socket[] }>();
  const server = net.createServer((client) => {
    if (refusing) {
      refused++;
      client.destroy();
      return;
    }
    const upstream = net.connect(port, '127.0.0.1');
    const line = { unresponsive: stalled, sockets: [client, upstream] };
    lines.add(line);
    const pass = (from: net.Socket, to: net.Socket): void => {
      from.on('data', (chunk) => {
        if (stallingCommand !== undefined && from === client)
          line.unresponsive ||= lowerCase(chunk).includes(stallingCommand);
        if (line.unresponsive) return;
        if (latency > 0 && from !== client) {
          setTimeout(() => to.write(chunk), latency);
          return;
        }
        const free = from === client && holding !== undefined ? freeBytes(chunk, holding) : chunk.length;
        if (free > 0) to.write(chunk.subarray(0, free));
        if (free < chunk.length) holding?.chunks.push(() => to.write(chunk.subarray(free)));
      });
      from.on('error', () => undefined);
      from.on('close', () => {
        lines.delete(line);
        to.destroy();
      });
    };
    pass(client, upstream);
    pass(upstream, client);
  });
  function drop(): void {
    for (const { sockets } of lines) for (const socket of sockets) socket.destroy();
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stall() {
      stalled = true;
      for (const line of lines) line.unresponsive = true;
    },
    refuse() {
      refusing = true;
      drop();
    },
    refused: () => refused,
    heal() {
      stalled = false;
      refusing = false;
    },
    drop,
    pause() {
      for (const line of lines) {
        paused.add(line);
        line.sockets[0]?.pause();
      }
    },
    async resume() {
      for (const { sockets } of paused) sockets[0]?.resume();
      await until(() => [...paused].every((line) => !lines.has(line)));
      paused.clear();
    },
    delay(milliseconds) {
      latency = milliseconds;
    },
    stallAt(command) {
      stallingCommand = command;
    },
    hold(command) {
      const chunks: (() => void)[] = [];
      holding = { command, chunks };
      return {
        arrived: (count) => until(() => chunks.length >= count),
        sendFirst: () => chunks.shift()?.(),
        sendAll() {
          holding = undefined;
          for (const send of chunks.splice(0)) send();
        },
      };
    },
    async close() {
      drop();
      server.close();
      await once(server, 'close');
    },
  };
}
