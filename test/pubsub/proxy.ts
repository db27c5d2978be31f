import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';

/** A TCP proxy to Redis that can behave like a network partition. */
export interface StallingProxy {
  readonly url: string;
  /** Drops all bytes from now on, of open and of new connections, without closing them. */
  stall(): void;
  /** Lets new connections through; stalled connections stay stalled, as after a deleted NAT entry. */
  heal(): void;
  /** Closes the open connections. */
  drop(): void;
  /** Drops all bytes of a connection from the moment it sends a command. */
  stallAt(command: string): void;
  close(): Promise<void>;
}

export async function startProxy(redisUrl: string): Promise<StallingProxy> {
  const port = Number(new URL(redisUrl).port);
  let stalled = false;
  let stallingCommand: string | undefined;
  const lines = new Set<{ unresponsive: boolean; sockets: net.Socket[] }>();
  const server = net.createServer((client) => {
    const upstream = net.connect(port, '127.0.0.1');
    const line = { unresponsive: stalled, sockets: [client, upstream] };
    lines.add(line);
    const pass = (from: net.Socket, to: net.Socket): void => {
      from.on('data', (chunk) => {
        if (stallingCommand !== undefined && from === client)
          line.unresponsive ||= String(chunk).includes(stallingCommand);
        if (!line.unresponsive) to.write(chunk);
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
    heal() {
      stalled = false;
    },
    drop,
    stallAt(command) {
      stallingCommand = command;
    },
    async close() {
      drop();
      server.close();
      await once(server, 'close');
    },
  };
}
