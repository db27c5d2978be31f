import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as fc from 'fast-check';
import {
  buildSchema,
  type DirectiveNode,
  type DocumentNode,
  type FragmentSpreadNode,
  GraphQLSchema,
  getNullableType,
  type InlineFragmentNode,
  isListType,
  Kind,
  type OperationDefinitionNode,
  parse,
  print,
  type SelectionSetNode,
  specifiedDirectives,
  TypeInfo,
  validate,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { type Behaviour, source } from '../engine/behaviour.ts';
import { type Choices, readChoices } from '../engine/choices.ts';
import { PROFILES } from '../engine/differential.ts';
import { randomQuery } from '../engine/random-query.ts';
import { randomSchema } from '../engine/random-schema.ts';
import { until } from '../until.ts';
import { DIRECTIVES, V17 } from './incremental-schema.ts';
import { jsonLines, merge } from './merge.ts';
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

const directive = (text: string): readonly DirectiveNode[] => {
  const [definition] = parse(`{ a ${text} }`).definitions;
  const [field] = (definition as OperationDefinitionNode).selectionSet.selections;
  return field?.directives ?? [];
};
const DEFER = directive('@defer');

/** Adds `@defer` to some fragments, and `@stream` to some lists. */
function withDirectives(schema: GraphQLSchema, document: DocumentNode, choices: Choices): DocumentNode {
  const types = new TypeInfo(schema);
  const defer = <T extends InlineFragmentNode | FragmentSpreadNode>(node: T): T | undefined =>
    choices.chance(150) ? { ...node, directives: [...(node.directives ?? []), ...DEFER] } : undefined;
  return visit(
    document,
    visitWithTypeInfo(types, {
      InlineFragment: { leave: defer },
      FragmentSpread: { leave: defer },
      SelectionSet: {
        leave(node) {
          const [first, ...others] = node.selections;
          if (first === undefined || others.length === 0 || !choices.chance(90)) return undefined;
          const selectionSet: SelectionSetNode = { kind: Kind.SELECTION_SET, selections: others };
          const part: InlineFragmentNode = { kind: Kind.INLINE_FRAGMENT, directives: DEFER, selectionSet };
          return { ...node, selections: [first, part] };
        },
      },
      Field: {
        enter(node) {
          if (!isListType(getNullableType(types.getType())) || !choices.chance(90)) return undefined;
          const stream = directive(`@stream(initialCount: ${choices.choose(3)})`);
          return { ...node, directives: [...(node.directives ?? []), ...stream] };
        },
      },
    }),
  );
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
