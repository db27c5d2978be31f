import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { versionInfo } from 'graphql';

const GRAPHQL_17 = versionInfo.major >= 17 ? ['--import', './test/engine/graphql17.mjs'] : [];

/** Runs a script of this folder in a process of its own, with the graphql of this one: what it writes. */
export function runAlone(
  script: string,
  options: readonly string[] = [],
  args: readonly string[] = [],
): string {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [...options, ...GRAPHQL_17, '--import', 'tsx', script, ...args],
    { cwd: resolve(__dirname, '../..'), encoding: 'utf8', maxBuffer: 2 ** 26 },
  );
  return `${stdout}${stderr}`;
}
