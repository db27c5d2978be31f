// A differential run: random schemas, data, failures, promises and queries under graphql-js and the compiled engine.
// node --import tsx engine-fuzz.mjs [--minutes=10 | --cases=N] [--seed=N] [--graphql=17] [--traced] [--profile=name]
// node --import tsx engine-fuzz.mjs --case=<what a failure printed>
// graphql 17 needs Node 22.15 or later. Exits with 1 at the first difference, after shrinking it.
import { parseArgs } from 'node:util';
import fc from 'fast-check';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    cases: { type: 'string', default: 'Infinity' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    graphql: { type: 'string', default: '16' },
    profile: { type: 'string' },
    case: { type: 'string' },
    traced: { type: 'boolean', default: false },
  },
});

if (values.graphql === '17') await import('../test/engine/graphql17.mjs');
const { both, describeCase, difference, PROFILES } = await import('../test/engine/differential.ts');
const { version } = await import('graphql');
if (values.traced) (await import('../test/engine/trace-recorder.ts')).recordEvents();

if (values.case !== undefined) {
  const fuzzed = read(values.case);
  console.log(describeCase(fuzzed));
  const found = difference(await both(fuzzed));
  console.log(found ?? 'no difference');
  process.exit(found === undefined ? 0 : 1);
}

const profiles = values.profile === undefined ? Object.keys(PROFILES) : [values.profile];
const cases = fc.record({
  bytes: fc.uint8Array({ minLength: 120, maxLength: 700, size: 'max' }),
  seed: fc.noShrink(fc.nat()),
  profile: fc.noShrink(fc.constantFrom(...profiles)),
});
const until = Date.now() + Number(values.minutes) * 60_000;
const most = Number(values.cases);
let count = 0;
console.log(`Node ${process.version}, graphql ${version}, seed ${values.seed}`);

const property = fc.asyncProperty(cases, async (fuzzed) => {
  count++;
  const found = difference(await both(fuzzed));
  if (found !== undefined) throw new Error(found);
});
for (let batch = 0; count < most && Date.now() < until; batch++) {
  const numRuns = Math.min(1000, most - count);
  const result = await fc.check(property, { numRuns, seed: Number(values.seed) + batch, endOnFailure: true });
  if (result.failed) {
    const fuzzed = await smaller(result.counterexample[0]);
    console.log(`${describeCase(fuzzed)}\n\n${difference(await both(fuzzed)) ?? result.errorInstance}\n`);
    console.log(
      `${count} cases, seed ${result.seed}: ${version.startsWith('17') ? '--graphql=17 ' : ''}--case='${written(fuzzed)}'`,
    );
    process.exit(1);
  }
}
console.log(`${count} cases, no difference`);

/** Shrinks a difference for half a minute by replacing bytes with zeros, which select the first choice. */
async function smaller(fuzzed) {
  const enough = Date.now() + 30_000;
  let { bytes } = fuzzed;
  for (let size = bytes.length; size >= 1; size >>= 1) {
    for (let at = 0; at < bytes.length && Date.now() < enough; at += size) {
      const fewer = bytes.slice().fill(0, at, at + size);
      const found = await both({ ...fuzzed, bytes: fewer }).then(difference, () => undefined);
      if (found !== undefined) bytes = fewer;
    }
  }
  return { ...fuzzed, bytes };
}

function written({ bytes, seed, profile }) {
  // Every byte after the end counts as zero.
  const end = bytes.findLastIndex((byte) => byte !== 0) + 1;
  return `${profile}/${seed}/${Buffer.from(bytes.subarray(0, end)).toString('base64')}`;
}

function read(text) {
  const [profile, seed, ...bytes] = text.split('/');
  return { profile, seed: Number(seed), bytes: new Uint8Array(Buffer.from(bytes.join('/'), 'base64')) };
}
