import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as fc from 'fast-check';
import { buildSchema, GraphQLSchema, parse, specifiedDirectives, validate } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { type Behaviour, source } from '../engine/behaviour.ts';
import { readChoices } from '../engine/choices.ts';
import { PROFILES } from '../engine/differential.ts';
import { randomQuery } from '../engine/random-query.ts';
import { randomSchema } from '../engine/random-schema.ts';
import { until } from '../until.ts';
import { DIRECTIVES, V17 } from './incremental-schema.ts';
import { merge } from './merge.ts';
import { open } from './serve.ts';

const CASES = 250;
const directives = buildSchema(`${DIRECTIVES} type Query { a: Int }`)
  .getDirectives()
  .filter(({ name }) => name === 'defer' || name === 'stream');

const ACCEPT = [
  'multipart/mixed;incrementalSpec=v0.2',
  'multipart/mixed;deferSpec=20220824',
  'text/event-stream',
  'application/jsonl',
];

/** Adds `@defer` to some fragments and `@stream` to some fields; returns undefined if the document is then invalid. */
function withDirectives(schema: GraphQLSchema, text: string, bytes: Uint8Array): string | undefined {
  const choices = readChoices(bytes);
  const deferred = text.replace(/\.\.\.(?: on)? ?\w+ ?(?=[@{ \n}])/g, (spread) => {
    if (/^\.\.\. ?on$/.test(spread.trim()) || !choices.chance(150)) return spread;
    return `${spread} @defer `;
  });
  const streamed = deferred.replace(/^(\s*(?:\w+: )?f\d[^@{\n]*)/gm, (field) =>
    choices.chance(60) ? `${field} @stream(initialCount: ${choices.choose(3)}) ` : field,
  );
  for (const candidate of [streamed, deferred]) {
    if (validate(schema, parse(candidate)).length === 0 && candidate !== text) return candidate;
  }
  return undefined;
}

/** Sends one operation and returns its payloads. */
async function payloadsOf(url: string, params: object, accept: string) {
  const reading = await open(url, { params, headers: { accept } });
  await until(() => reading.ended);
  return [...reading.body.matchAll(/^(?:data: )?(\{.*\})\r?$/gm)].map(([, json]) =>
    JSON.parse(json as string),
  );
}

const isNullError = (error: object): boolean => JSON.stringify(error).includes('non-nullable');

describe('the payloads of random deferred documents', () => {
  it(`merged payloads equal the response without the directives in ${CASES} random cases`, async () => {
    const ignore = (): void => undefined;
    // graphql-js leaves rejections of resolvers unhandled after a null of a sibling.
    process.on('unhandledRejection', ignore);
    process.env['NODE_ENV'] = 'production';
    let current: ReturnType<typeof graphqlHTTP> | undefined;
    const server = createServer((req, res) => current?.(req, res));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
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
        const schema = new GraphQLSchema({
          ...random.schema.toConfig(),
          directives: [...specifiedDirectives, ...directives],
          assumeValid: true,
        });
        const query = randomQuery(choices, random.schema);
        const text = withDirectives(schema, query.text, places);
        if (text === undefined) return;
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
        const [whole] = await run(query.text, 'application/json');
        const payloads = await run(text, accept);
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
        const paths = (errors: { path?: unknown }[]): string[] =>
          errors.map((error) => JSON.stringify(error.path)).sort();
        expect(paths(merged.errors)).toEqual(paths(whole.errors ?? []));
      }),
      { numRuns: CASES, seed: 22 },
    );
    server.close();
    server.closeAllConnections();
    process.off('unhandledRejection', ignore);
    expect(counts.compared).toBeGreaterThan(CASES / 8);
    expect(counts.streamed).toBeGreaterThan(V17 ? CASES / 8 : -1);
  }, 120_000);
});
