import fc from 'fast-check';
import { parse } from 'graphql';
import { type Behaviour, type Profile, source } from './behaviour.ts';
import { engines, outcomeOf, prepare, settingsOf } from './compare.ts';
import { randomQuery } from './query.ts';
import { hash, readTape } from './tape.ts';
import { ignoreUnhandledRejections } from './unhandled.ts';
import { randomWorld } from './world.ts';

const CASES = Number(process.env['ENGINE_CASES'] ?? 300);
const SEED = Number(process.env['ENGINE_SEED'] ?? 20_261_120);

const PROFILES: Record<string, Profile> = {
  'calm and synchronous': { late: 0, fails: 0, nulls: 20, strange: 0 },
  'failing and synchronous': { late: 0, fails: 90, nulls: 80, strange: 60 },
  'calm and promised': { late: 400, fails: 0, nulls: 20, strange: 0 },
  'failing and promised': { late: 400, fails: 90, nulls: 60, strange: 40 },
  'promised everywhere, failing often': { late: 850, fails: 160, nulls: 60, strange: 30 },
};

interface Execution {
  readonly text: string;
  readonly calls: readonly string[];
}

/** Executes one case under both engines, each with resolvers of its own. */
async function both(bytes: Uint8Array, profile: Profile): Promise<[Execution, Execution, string]> {
  const tape = readTape(bytes);
  const world = randomWorld(tape);
  const query = randomQuery(tape, world.schema);
  const seed = hash(bytes.join(), 1);
  const root = parse(query.text).definitions.some(
    (node) => 'operation' in node && node.operation === 'mutation',
  )
    ? 'Mutation'
    : 'Query';
  const results: Execution[] = [];
  for (const engine of [engines.graphqlJs, engines.compiled]) {
    const behaviour: Behaviour = { schema: world.schema, seed, profile, calls: [] };
    world.use(behaviour);
    const run = prepare(engine, world.schema, query.text, settingsOf());
    const text = await outcomeOf(() =>
      run({ rootValue: source(behaviour, root, ''), variableValues: query.variables }),
    );
    results.push({ text, calls: [...behaviour.calls] });
    // Orphans finish before the next engine begins.
    for (let i = 0; i < 30; i++) await undefined;
  }
  return [...(results as [Execution, Execution]), query.text];
}

ignoreUnhandledRejections();

describe('the compiled engine beside graphql-js', () => {
  it.each(Object.entries(PROFILES))(`answers alike: %s (seed ${SEED})`, async (_name, profile) => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 150, maxLength: 400 }), async (bytes) => {
        const [reference, ours] = await both(bytes, profile);
        expect(ours.text).toBe(reference.text);
        if (reference.text.startsWith('data')) expect(ours.calls).toEqual(reference.calls);
      }),
      { numRuns: CASES, seed: SEED, endOnFailure: process.env['ENGINE_SHRINK'] === undefined },
    );
  });
});
