// A differential run: handlers with `auth.schemaFor` and handlers of the whole schema, with random schemas, callers,
// operations, variables, engines, modes and transports, and callers that lose scopes between two events of a socket.
// node --import tsx auth-fuzz.mjs [--minutes=10 | --cases=N] [--seed=N] [--graphql=17]
// graphql 17 needs Node 22.15 or later. Exits with 1 at the first difference; its seed repeats it.
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    cases: { type: 'string', default: 'Infinity' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    graphql: { type: 'string', default: '16' },
  },
});

process.env['NODE_ENV'] ??= 'test';
if (values.graphql === '17') await import('../test/engine/graphql17.mjs');
const { compareSchema, noCounts } = await import('../test/auth/differential.ts');
const { version } = await import('graphql');

const until = Date.now() + Number(values.minutes) * 60_000;
const most = Number(values.cases);
const counts = noCounts();
console.log(`Node ${process.version}, graphql ${version}, seed ${values.seed}`);
for (let seed = Number(values.seed); counts.cases < most && Date.now() < until; seed++) {
  const difference = await compareSchema(seed, { callers: 4, documents: 12 }, counts);
  if (difference === undefined) continue;
  console.log(JSON.stringify(difference, undefined, 2));
  console.log(`${counts.cases} cases, --seed=${seed}`);
  process.exit(1);
}
console.log(JSON.stringify(counts));
console.log(`${counts.cases} cases, no difference`);
