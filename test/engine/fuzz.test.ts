import { runAlone } from './run-in-process.ts';

const CASES = process.env['ENGINE_CASES'] ?? '2000';
const SEED = process.env['ENGINE_SEED'] ?? '20261120';

// In a process of its own: graphql-js leaves rejections unhandled, which Jest takes for a failure of the test.
it(`answers like graphql-js in ${CASES} random cases of seed ${SEED}`, () => {
  const written = runAlone('bench/engine-fuzz.mjs', [], [`--cases=${CASES}`, `--seed=${SEED}`]);
  expect(written).toContain(`${CASES} cases, no difference`);
}, 300_000);
