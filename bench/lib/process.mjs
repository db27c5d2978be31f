import { spawn, spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { serverNode } from './environment.mjs';

const pinned = availableParallelism() > 1 && spawnSync('taskset', ['--version']).status === 0;

/** Starts a server or load process on its core; `ask` sends it one message and waits for the reply. */
export function startProcess(role, env, name = role) {
  const core = role === 'server' ? '0' : '1';
  const node = role === 'server' ? serverNode : process.execPath;
  const script = new URL(`${name}.mjs`, import.meta.url).pathname;
  const [command, args] = pinned ? ['taskset', ['-c', core, node, script]] : [node, [script]];
  const child = spawn(command, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production', ...env, BENCH_ROLE: role },
  });
  return { pid: child.pid, ask: (message) => ask(child, message), stop: () => stop(child) };
}

function ask(child, message) {
  return new Promise((resolve, reject) => {
    const exited = (code) => reject(new Error(`a bench process ended early (${code})`));
    child.once('exit', exited);
    child.once('message', (answer) => {
      child.off('exit', exited);
      if (answer.error !== undefined) reject(new Error(answer.error));
      else resolve(answer);
    });
    child.send(message);
  });
}

function stop(child) {
  if (child.exitCode !== null) return undefined;
  return new Promise((resolve) => {
    child.once('exit', resolve);
    child.kill('SIGKILL');
  });
}
