import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from './programs.ts';

/** A PostgreSQL server that a test has started. */
export interface PostgresServer {
  readonly url: string;
  readonly port: number;
  /** Sends a signal to all of its processes. */
  signal(name: NodeJS.Signals): void;
  /** Kills all of its processes, like a power failure. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Kills it and removes its files. */
  remove(): Promise<void>;
}

const DEBIAN = '/usr/lib/postgresql';

/** Returns the path of a program of PostgreSQL. Debian has a folder for each version. */
function programOf(name: string): string {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN) : [];
  const paths = versions.map((version) => join(DEBIAN, version, 'bin', name));
  return paths.find((path) => existsSync(path)) ?? name;
}

/** PostgreSQL refuses to run as root. */
function account(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const line = readFileSync('/etc/passwd', 'utf8').match(/^(?:postgres|nobody):[^:]*:(\d+):(\d+):/m);
  return { uid: Number(line?.[1]), gid: Number(line?.[2]) };
}

/** Starts a PostgreSQL server with an empty database on a free port, with more settings. */
export async function startPostgres(settings: readonly string[] = []): Promise<PostgresServer> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'espalier-postgres-'));
  const user = account();
  if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const words = ['-D', data, '-U', 'app', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'];
  execFileSync(programOf('initdb'), words, { ...user, cwd: folder, stdio: 'pipe' });
  let child: ChildProcess | undefined;
  let exited: Promise<unknown> | undefined;

  const server: PostgresServer = {
    url: `postgres://app@127.0.0.1:${port}/postgres`,
    port,
    signal(name) {
      for (const pid of processesOf(child)) kill(pid, name);
    },
    async kill() {
      server.signal('SIGKILL');
      await exited;
    },
    async start() {
      const options = [
        `port=${port}`,
        `unix_socket_directories=${folder}`,
        'listen_addresses=127.0.0.1',
        ...settings,
      ];
      const args = ['-D', data, ...options.flatMap((option) => ['-c', option])];
      child = spawn(programOf('postgres'), args, { ...user, cwd: folder, stdio: 'ignore' });
      exited = once(child, 'exit');
      await accepts(server.url, child);
    },
    async remove() {
      await server.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}

async function accepts(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`postgres ended with ${child.exitCode}`);
    const client = new pg.Client(url);
    try {
      await client.connect();
      await client.end();
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** The server has a process for each connection. */
function processesOf(child: ChildProcess | undefined): readonly number[] {
  if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return [];
  const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
  return [child.pid, ...children.trim().split(' ').filter(Boolean).map(Number)];
}

function kill(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended.
  }
}
