import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { versionInfo } from 'graphql';

const CASES = process.env['ENGINE_CASES'] ?? '2000';
const SEED = process.env['ENGINE_SEED'] ?? '20261120';

// In a process of its own: graphql-js leaves rejections unhandled, which Jest takes for a failure of the test.
it(`answers like graphql-js in ${CASES} random cases of seed ${SEED}`, () => {
  const options = [`--cases=${CASES}`, `--seed=${SEED}`, `--graphql=${versionInfo.major}`];
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', 'bench/engine-fuzz.mjs', ...options],
    { cwd: resolve(__dirname, '../..'), encoding: 'utf8' },
  );
  expect(`${stdout}${stderr}`).toContain(`${CASES} cases, no difference`);
}, 300_000);
