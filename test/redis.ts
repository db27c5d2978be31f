import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePort } from './programs.ts';

/** A redis-server that a test has started. */
export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Kills it with SIGKILL, like a crash. */
  kill(): Promise<void>;
  /** Sends it another signal, such as SIGSTOP. */
  signal(name: NodeJS.Signals): void;
  /** Starts it again on the same port. */
  start(): Promise<void>;
}

/** Starts a real redis-server on a free port, with nothing written to disk, and with more arguments. */
export async function startRedis(words: readonly string[] = []): Promise<RedisServer> {
  const port = await freePort();
  let child: ChildProcess | undefined;

  const server: RedisServer = {
    url: `redis://127.0.0.1:${port}`,
    port,
    async kill() {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
    signal: (name) => void child?.kill(name),
    async start() {
      child = spawn('redis-server', [
        '--port',
        `${port}`,
        '--bind',
        '127.0.0.1',
        '--save',
        '',
        '--appendonly',
        'no',
        // A replica writes no file either.
        '--repl-diskless-load',
        'swapdb',
        ...words,
      ]);
      await new Promise<void>((resolve, reject) => {
        child?.once('error', () =>
          reject(
            new Error(
              'redis-server was not found; these tests need it (Debian: apt-get install redis-server)',
            ),
          ),
        );
        child?.once('exit', (code) => reject(new Error(`redis-server ended with ${code}`)));
        let output = '';
        child?.stdout?.on('data', (text) => {
          output += text;
          if (output.includes('Ready to accept connections')) resolve();
        });
      });
    },
  };
  await server.start();
  return server;
}
