import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { connect, createServer } from 'node:net';
import { delimiter, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const PATH = `${process.env['PATH']}${delimiter}/usr/sbin`;

/** Whether a program can be started. CI installs all programs, and its tests fail without them. */
export const isAvailable = (program: string): boolean =>
  process.env['CI'] === 'true' || PATH.split(delimiter).some((folder) => isExecutable(join(folder, program)));

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * `it` and `describe` for tests that need programs, which skip them where one is missing. A test file in which every test
 * needs a program is left out as a whole: see scripts/test/programs.mjs.
 */
export const needs = (...programs: string[]) =>
  programs.every(isAvailable) ? { it, describe } : { it: it.skip, describe: describe.skip };

const binaries = new Map<number, string>();

/** Returns the binary of a version of Node, which npm installs the first time. */
export function nodeOf(line: number): string {
  const known = binaries.get(line) ?? findNode(line);
  binaries.set(line, known);
  return known;
}

function findNode(line: number): string {
  const url = pathToFileURL(resolve(__dirname, '../scripts/node-lines.mjs'));
  const script = `const { binaryOf } = await import('${url}'); console.log(binaryOf(${line}));`;
  const args = ['--input-type=module', '--eval', script];
  const output = execFileSync(process.execPath, args, { encoding: 'utf8' });
  return output.trim().split('\n').at(-1) as string;
}

/**
 * Ports below those that systems give to clients, and to servers that ask for any port: 40 for each process that runs tests.
 * So nothing takes a port before the test uses it, or while the program that uses it is started again.
 */
const FIRST_PORT = 20_000;
const PORTS_PER_PROCESS = 40;
const firstOwn = FIRST_PORT + (process.pid % 300) * PORTS_PER_PROCESS;
let index = Math.floor(Math.random() * PORTS_PER_PROCESS);

/** Returns a free port, which no other test uses. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < PORTS_PER_PROCESS; attempt++) {
    const port = firstOwn + (index++ % PORTS_PER_PROCESS);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port from ${firstOwn} to ${firstOwn + PORTS_PER_PROCESS - 1}`);
}

/** Whether a server can listen on a port of all addresses. */
async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port);
  try {
    await once(probe, 'listening');
  } catch {
    return false;
  }
  probe.close();
  await once(probe, 'close');
  return true;
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
