import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const PATH = `${process.env['PATH']}:/usr/sbin`;

/** Whether a program can be started. CI installs all programs, and its tests fail without them. */
export const isAvailable = (program: string): boolean =>
  process.env['CI'] === 'true' || PATH.split(':').some((directory) => existsSync(join(directory, program)));

/** Returns the binary of a version of Node, which npm installs the first time. */
export function nodeOf(line: number): string {
  const url = pathToFileURL(resolve(__dirname, '../scripts/node-lines.mjs'));
  const script = `const { binaryOf } = await import('${url}'); console.log(binaryOf(${line}));`;
  const args = ['--input-type=module', '--eval', script];
  const output = execFileSync(process.execPath, args, { encoding: 'utf8' });
  return output.trim().split('\n').at(-1) as string;
}

/** Returns a free port. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

interface ProgramOptions {
  /** The port of 127.0.0.1 on which it listens. */
  readonly port: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a program and waits until it accepts connections. Returns the function that ends it. */
export async function startProgram(
  program: string,
  args: readonly string[],
  { port, env }: ProgramOptions,
): Promise<() => Promise<void>> {
  const child = spawn(program, args, { env: { ...process.env, PATH, ...env } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  child.once('error', (error) => (output += error.message));
  while (!(await accepts(port))) {
    if (child.pid === undefined || child.exitCode !== null)
      throw new Error(`${program} did not start: ${output}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return async () => {
    const closed = once(child, 'close');
    child.kill('SIGTERM');
    await closed;
  };
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
