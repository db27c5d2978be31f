/** @tags graphql slow */
import { createServer } from 'node:http';
import * as fc from 'fast-check';
import { type DocumentNode, parse, print, validate, visit } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { type Behaviour, source } from '../engine/behaviour.ts';
import { readChoices } from '../engine/choices.ts';
import { PROFILES } from '../engine/differential.ts';
import { randomQuery } from '../engine/random-query.ts';
import { randomSchema } from '../engine/random-schema.ts';
import { listen } from '../kit.ts';
import { open } from '../live/serve-streams.ts';
import { until } from '../until.ts';
import { V17 } from './incremental-schema.ts';
import { jsonLines, merge } from './merge.ts';
import { withDirectives, withIncremental } from './random-directives.ts';

const CASES = 125;
const ACCEPT = [
  'multipart/mixed;incrementalSpec=v0.2',
  'multipart/mixed;deferSpec=20220824',
  'text/event-stream',
  'application/jsonl',
];

/** Removes the definitions of unused variables, which validation refuses. */
function withoutUnusedVariables(document: DocumentNode): DocumentNode {
  const used = new Set<string>();
  visit(document, {
    VariableDefinition: () => false,
    Variable: ({ name }) => void used.add(name.value),
  });
  return visit(document, {
    VariableDefinition: ({ variable }) => (used.has(variable.name.value) ? undefined : null),
  });
}

/** Sends one operation and returns its payloads. */
async function payloadsOf(url: string, params: object, accept: string) {
  const reading = await open(url, { params, headers: { accept } });
  await until(() => reading.ended);
  return jsonLines(reading.body);
}

const isNullError = (error: object): boolean => JSON.stringify(error).includes('non-nullable');

describe('the payloads of random deferred documents', () => {
  it(`merged payloads equal the response without the directives in ${CASES} random cases`, async () => {
    process.env['NODE_ENV'] = 'production';
    let current: ReturnType<typeof graphqlHTTP> | undefined;
    const server = createServer((req, res) => current?.(req, res));
    const { url } = await listen(server, '/');
    const counts = { compared: 0, streamed: 0 };
    const input = fc.record({
      bytes: fc.uint8Array({ minLength: 60, maxLength: 400 }),
      places: fc.uint8Array({ minLength: 20, maxLength: 60 }),
      seed: fc.nat(100_000),
      profile: fc.constantFrom(...Object.values(PROFILES)),
      accept: fc.constantFrom(...ACCEPT),
    });
    await fc.assert(
      fc.asyncProperty(input, async ({ bytes, places, seed, profile, accept }) => {
        const choices = readChoices(bytes);
        const random = randomSchema(choices);
        const schema = withIncremental(random.schema);
        const query = randomQuery(choices, random.schema);
        const original = withoutUnusedVariables(parse(query.text));
        const changed = withDirectives(schema, original, readChoices(places));
        if (validate(schema, changed).length > 0) return;
        const [plain, text] = [print(original), print(changed)];
        const variables = query.variables[0];
        const run = async (document: string, type: string) => {
          const behaviour: Behaviour = { schema, seed, profile, calls: [], open: 0 };
          random.use(behaviour);
          current = graphqlHTTP(schema, {
            graphiql: false,
            onError: false,
            rootValue: () => source(behaviour, query.root, ''),
          });
          const payloads = await payloadsOf(url, { query: document, variables }, type);
          while (behaviour.open > 0) await new Promise(setImmediate);
          return payloads;
        };
        const [whole = { hasNext: false }] = await run(plain, 'application/json');
        const payloads = await run(text, `${accept}, application/json`);
        if (payloads.length > 1) counts.streamed++;
        const merged = merge(payloads);
        if (whole.data === undefined) {
          expect(merged.data).toBeUndefined();
          return;
        }
        // A null in a non-null position ends at the part, instead of at a field above it.
        if (merged.hasFailedParts || [...merged.errors, ...(whole.errors ?? [])].some(isNullError)) return;
        counts.compared++;
        expect(merged.data).toEqual(whole.data);
        // Parts that share a failed field repeat its error.
        const paths = (errors: { path?: unknown }[]): string[] => [
          ...new Set(errors.map((error) => JSON.stringify(error.path)).sort()),
        ];
        expect(paths(merged.errors)).toEqual(paths(whole.errors ?? []));
      }),
      { numRuns: CASES, seed: 22 },
    );
    server.close();
    server.closeAllConnections();
    expect(counts.compared).toBeGreaterThan(CASES / 8);
    expect(counts.streamed).toBeGreaterThan(V17 ? CASES / 8 : -1);
  }, 120_000);
});
