// Run by document-memory.test.ts in a process with a small heap: distinct malicious documents, then a known one.
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { coreOf, type GraphQLCore } from '../../src/core/core.ts';

const LEAVES = ['id', 'name', 'a', 'b', 's'];
const schema = buildSchema(
  `input In { c: [In], i: Int } type U { ${LEAVES.map((leaf) => `${leaf}: String`).join(' ')} u: U us: [U] }
   type Query { u: U f(in: In): String }`,
);
const LEAF = { id: 'i', name: 'n', a: 'a', b: 'b', s: 's' };
const user: Record<string, unknown> = { ...LEAF, us: [LEAF] };
user['u'] = user;
const rootValue = { u: user, f: 'f' };
const handler = graphqlHTTP(schema, { graphiql: false, rootValue });
const core = coreOf(handler) as GraphQLCore;

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const FLAGS = numbers(6);

/** Documents that retain much memory if each fragment spread has its own compiled form for each combination of variables. */
function spreads(index: number): string {
  const flags = FLAGS.map((flag) => `$v${flag}: Boolean!`).join(' ');
  const conditions = FLAGS.map((flag) => `...F @include(if: $v${flag})`).join(' ');
  const fields = numbers(100).map((n) => `a${n}of${index}: u { ...F }`);
  return `query (${flags}) { u { ${fields.join(' ')} u { ${conditions} } } }
    fragment F on U { id name a b s us { id name a b s } }`;
}

/** The nodes of literals are many times as large as their text. */
const literals = (index: number): string => `{ r${index}: f(in: { c: [${'{}'.repeat(2400)}] }) }`;
const fields = (index: number): string =>
  `{ u { ${numbers(1200)
    .map((n) => `r${index}x${n}: id`)
    .join(' ')} } }`;
const invalid = (index: number): string =>
  `{ u { ${numbers(1200)
    .map((n) => `r${index}x${n}`)
    .join(' ')} } }`;
const padded = (index: number): string => `{ u { id } } # ${String(index).repeat(20_000)}`.slice(0, 99_000);
const KINDS = [spreads, literals, fields, invalid, padded];

async function execute(query: string, variableValues: Record<string, unknown>): Promise<boolean> {
  const prepared = await core.prepare(schema, { query, operationName: undefined });
  if ('errors' in prepared) return false;
  const outcome = await prepared.execute({ rootValue, contextValue: undefined, variableValues });
  return outcome.kind === 'data';
}

const count = Number(process.argv[2]);
/** Combinations of the variables of documents with variants; fewer shorten long runs. */
const variants = Number(process.argv[3] ?? 64);
const KNOWN = '{ u { id name us { id } } }';
let parsedAgain = 0;
const durations: number[] = [];
for (let index = 0; index < count; index++) {
  const query = (KINDS[index % KINDS.length] as (typeof KINDS)[number])(index);
  const combinations = index % KINDS.length === 0 ? variants : 2;
  for (let bits = 0; bits < combinations; bits++) {
    const variables = Object.fromEntries(FLAGS.map((flag) => [`v${flag}`, (bits & (1 << flag)) !== 0]));
    await execute(query, variables);
  }
  // A known document is prepared synchronously, unless it was evicted.
  const before = await core.prepare(schema, { query: KNOWN, operationName: undefined });
  const started = performance.now();
  await execute(KNOWN, {});
  durations.push(performance.now() - started);
  const after = await core.prepare(schema, { query: KNOWN, operationName: undefined });
  if (before !== after) parsedAgain++;
}
/** The median duration of the known document in microseconds, at the start and at the end. */
const medians = [durations.slice(0, 1000), durations.slice(-1000)].map((values) =>
  Math.round(1000 * (values.sort((a, b) => a - b)[values.length >> 1] ?? 0)),
);
const heapMiB = Math.round(process.memoryUsage().heapUsed / 2 ** 20);
process.stdout.write(JSON.stringify({ count, parsedAgain, medians, heapMiB }));
