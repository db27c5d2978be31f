/** @tags graphql slow */
import { TEST_ALL } from '../test-all.ts';
import { compareSchema, noCounts } from './differential.ts';

const SCHEMAS = TEST_ALL ? 5 : 2;
/** The seeds count from here. */
const FIRST = Number(process.env['SEED'] ?? 1);

it(`an operation has the result of the whole schema or names what its caller does not see, in ${SCHEMAS} random schemas`, async () => {
  const counts = noCounts();
  for (let seed = FIRST; seed < FIRST + SCHEMAS; seed++)
    expect(await compareSchema(seed, { callers: 3, documents: 6 }, counts)).toBeUndefined();
  expect(counts.cases).toBeGreaterThan(SCHEMAS * 100);
  expect(counts.hidden).toBeGreaterThan(SCHEMAS);
  expect(counts.refused).toBeGreaterThan(SCHEMAS);
  expect(counts.data).toBeGreaterThan(SCHEMAS * 20);
  expect(counts.denied).toBeGreaterThan(0);
  expect(counts.equal['events']).toBeGreaterThan(0);
}, 300_000);
