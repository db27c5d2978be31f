import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const CHROMIUM = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';
// nginx is in /usr/sbin, which only root has in PATH.
const PATH = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];

/** The programs that the tests run and this machine lacks: a sentence for each, with what to install. */
export function missingPrograms() {
  return [
    ...(isExecutable(CHROMIUM)
      ? []
      : [
          `The tests need Chromium, which is not at ${CHROMIUM}. Install it (Debian: apt-get install chromium) or set CHROMIUM_PATH.`,
        ]),
    ...need('redis-server', 'redis-server'),
    ...need('nginx', 'nginx-light'),
    // Only the tests of docs/deployment.md and of shared caches need these; CI runs them all.
    ...(process.env.CI === 'true' ? proxies() : []),
  ];
}

/** The programs whose tests are left out on this machine, except in CI. */
export function leftOutPrograms() {
  return process.env.CI === 'true' ? [] : proxies().map((text) => `${text} Its tests are left out.`);
}

const proxies = () => [
  ...need('caddy', 'caddy'),
  ...need('haproxy', 'haproxy'),
  ...need('varnishd', 'varnish'),
];

function need(program, debianPackage) {
  if (PATH.some((folder) => isExecutable(join(folder, program)))) return [];
  return [
    `The tests need ${program}, which is not in PATH. Install it (Debian: apt-get install ${debianPackage}).`,
  ];
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
