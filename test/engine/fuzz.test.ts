/** @tags graphql slow */
import { TEST_ALL } from '../test-all.ts';
import { runInProcess } from './run-in-process.ts';

const CASES = process.env['ENGINE_CASES'] ?? (TEST_ALL ? '750' : '250');
const SEED = process.env['ENGINE_SEED'] ?? '20261120';

// Runs in its own process: graphql-js leaves rejections unhandled, which would fail the test.
it(`the engine responds like graphql-js in ${CASES} random cases of seed ${SEED}`, () => {
  const written = runInProcess('bench/engine-fuzz.mjs', [], [`--cases=${CASES}`, `--seed=${SEED}`]);
  expect(written).toContain(`${CASES} cases, no difference`);
}, 300_000);
