// The programs that tests start besides Node. node scripts/test/programs.mjs prints the Debian packages of the missing ones.
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

/**
 * Tests that import one of the modules, directly or not, are left out as a whole without the program, except for test files that
 * call needs('<name>') of test/programs.ts: these leave out only some of their tests.
 */
export const PROGRAMS = [
  { name: 'chromium', debian: 'chromium', macos: 'google-chrome', modules: ['test/chromium.ts'] },
  {
    name: 'redis-server',
    debian: 'redis-server',
    macos: 'redis',
    modules: ['test/redis.ts', 'test/redis-sentinel.ts'],
  },
  { name: 'initdb', debian: 'postgresql', macos: 'postgresql@17', modules: ['test/postgres.ts'] },
  { name: 'nats-server', debian: 'nats-server', macos: 'nats-server' },
  // Contains a broker that speaks the protocol of Kafka.
  { name: 'kcat', debian: 'kcat', macos: 'kcat' },
  { name: 'nginx', debian: 'nginx-light', macos: 'nginx' },
  { name: 'caddy', debian: 'caddy', macos: 'caddy' },
  { name: 'haproxy', debian: 'haproxy', macos: 'haproxy' },
  { name: 'varnishd', debian: 'varnish', macos: 'varnish' },
  { name: 'curl', debian: 'curl', macos: 'curl' },
  { name: 'openssl', debian: 'openssl', macos: 'openssl' },
];

// Debian has a folder for each version of PostgreSQL.
const POSTGRES = '/usr/lib/postgresql';
const versions = existsSync(POSTGRES) ? readdirSync(POSTGRES) : [];
// Servers are in /usr/sbin, which only root has in PATH.
const FOLDERS = [
  ...(process.env.PATH ?? '').split(delimiter),
  '/usr/sbin',
  '/usr/local/sbin',
  ...versions.map((version) => join(POSTGRES, version, 'bin')),
];
const CHROMIUM = [
  ...['chromium', 'chromium-browser', 'google-chrome'].flatMap((name) =>
    FOLDERS.map((folder) => join(folder, name)),
  ),
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** The path of a Chromium, or undefined. CHROMIUM_PATH replaces the search. */
export function findChromium() {
  const chosen = process.env.CHROMIUM_PATH;
  return (chosen === undefined ? CHROMIUM : [chosen]).find(isExecutable);
}

export function missingPrograms() {
  return PROGRAMS.filter(({ name }) =>
    name === 'chromium'
      ? findChromium() === undefined
      : !FOLDERS.some((folder) => isExecutable(join(folder, name))),
  );
}

/** The command that installs programs on this system. */
export function installCommand(programs) {
  if (process.platform === 'darwin') return `brew install ${programs.map(({ macos }) => macos).join(' ')}`;
  const sudo = process.getuid?.() === 0 ? '' : 'sudo ';
  return `${sudo}apt-get install -y ${programs.map(({ debian }) => debian).join(' ')}`;
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

if (resolve(process.argv[1] ?? '') === import.meta.filename) {
  console.log(
    missingPrograms()
      .map(({ debian }) => debian)
      .join(' '),
  );
}
