import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { versionInfo } from 'graphql';

const GRAPHQL_17 = versionInfo.major >= 17 ? ['--import', './test/engine/graphql17.mjs'] : [];

/** Runs a script in its own process, with the same major version of graphql; returns its output. */
export function runInProcess(
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
