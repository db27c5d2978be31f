/** @tags graphql */
import { type Behaviour, source } from './behaviour.ts';
import { hash, readChoices } from './choices.ts';
import { engines, outcomeOf, prepare } from './compare.ts';
import { PROFILES } from './differential.ts';
import { randomQuery } from './random-query.ts';
import { randomSchema } from './random-schema.ts';

const CASES = 30;

/** Executes a random query on a schema with batch resolvers, or with resolvers for one object each. */
async function execute(
  engine: keyof typeof engines,
  seed: number,
  profile: string,
  batching: 'always' | 'never',
): Promise<string> {
  const choices = readChoices(
    Uint8Array.from({ length: 500 }, (_, index) => hash(`byte ${index}`, seed) % 256),
  );
  const { schema, use } = randomSchema(choices, batching);
  const query = randomQuery(choices, schema);
  const behaviour: Behaviour = { schema, seed, profile: PROFILES[profile] as never, calls: [], open: 0 };
  use(behaviour);
  const run = prepare(engines[engine], schema, query.text);
  const variableValues = query.variables[0];
  const text = await outcomeOf(() => run({ rootValue: source(behaviour, query.root, ''), variableValues }));
  do await new Promise(setImmediate);
  while (behaviour.open > 0);
  return text;
}

/** Which of several errors a null position has, and the order of errors, depend on the times of the failures. */
function withoutOrder(text: string): object {
  const [body = ''] = text.split('\n');
  const { data, errors } = JSON.parse(body.slice(body.indexOf('{')));
  return { data, hasErrors: errors !== undefined };
}

describe.each(['compiled', 'graphqlJs'] as const)('in the engine %s', (engine) => {
  it.each(['synchronous without errors', 'promises without errors', 'promises with errors'])(
    `batch resolvers give the results of resolvers for one object in ${CASES} random cases: %s`,
    async (profile) => {
      for (let seed = 1; seed <= CASES; seed++) {
        const batched = await execute(engine, seed, profile, 'always');
        const single = await execute(engine, seed, profile, 'never');
        expect({ seed, ...withoutOrder(batched) }).toEqual({ seed, ...withoutOrder(single) });
      }
    },
  );
});
