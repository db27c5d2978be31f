// Run by no-eval.test.ts in a process that must not generate code from strings.
import { buildSchema } from 'graphql';
import { engines, prepare } from './compare.ts';

let blocked = false;
try {
  new Function('return 1')();
} catch {
  blocked = true;
}
const run = prepare(
  engines.compiled,
  buildSchema('type Query { text(n: Int): String }'),
  'query ($n: Int) { text(n: $n) }',
);
const outcome = await run({
  rootValue: { text: ({ n }: { n: number }) => `got ${n}` },
  variableValues: { n: 3 },
});
process.stdout.write(JSON.stringify({ blocked, body: outcome.body.toString() }));
