/** @tags graphql */
import type { IncomingMessage } from 'node:http';
import * as graphql from 'graphql';
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLFieldResolver,
  type GraphQLSchema,
  isObjectType,
  parse,
  print,
  validate,
} from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { AuthOptions } from '../../types/auth.ts';
import { type Choices, hash, readChoices } from '../engine/choices.ts';
import { V17 } from '../graphql/incremental-schema.ts';
import { jsonLines, type Merged, merge, type Payload } from '../graphql/merge.ts';
import { withDirectives, withIncremental } from '../graphql/random-directives.ts';
import { TEST_ALL } from '../test-all.ts';
import { Oracle } from './oracle.ts';
import {
  addResolvers,
  policiesOf,
  randomCaller,
  randomDocument,
  randomSchema,
  randomVariables,
} from './random-case.ts';
import { GRAPHQL, scopesOf, serveInTurn } from './service.ts';

const SCHEMAS = TEST_ALL ? 10 : 5;
const DOCUMENTS = 2;
const CALLERS = 2;
/** The seeds count from here: the thorough pass continues after those of the first one. */
const FIRST = Number(process.env['SEED'] ?? (TEST_ALL ? 205 : 200));

const ACCEPT = [
  'multipart/mixed;incrementalSpec=v0.2',
  'multipart/mixed;deferSpec=20220824',
  'text/event-stream',
  'application/jsonl',
];

const auth: AuthOptions<IncomingMessage> = {
  scopes: scopesOf,
  policies: (names, request) => policiesOf(scopesOf(request)).filter((name) => names.includes(name)),
};
const options = { limits: { depth: 30 }, graphiql: false, onError: false, auth } as const;
const nulls = { ...options, auth: { ...auth, mode: 'null' } } as const;

const handlersOf = (schema: GraphQLSchema) => ({
  '/compiled': graphqlHTTP(schema, nulls),
  '/graphql-js': graphqlHTTP(schema, { ...nulls, engine: 'graphql-js' }),
  '/reject': graphqlHTTP(schema, options),
});
type Path = keyof ReturnType<typeof handlersOf>;

const server = serveInTurn();

interface Request {
  readonly query: string;
  readonly variables: Record<string, unknown>;
  readonly onError?: string;
}

interface Case extends Request {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  /** The same schema again, if graphql-js supports incremental delivery. */
  readonly twin: GraphQLSchema | undefined;
  readonly caller: string | undefined;
  readonly accept: string;
}

interface Answer {
  readonly status: number;
  readonly payloads: readonly Payload[];
}

async function send(
  path: Path,
  params: Request,
  caller: string | undefined,
  accept: string,
): Promise<Answer> {
  const response = await server.send(path, params, caller, `${accept}, ${GRAPHQL}`);
  return { status: response.status, payloads: jsonLines(await response.text()) };
}

const keysOf = (path: { prev: unknown; key: string | number } | undefined): (string | number)[] =>
  path === undefined ? [] : [...keysOf(path.prev as typeof path), path.key];

/** Lets the resolvers of a twin throw at the places that are hidden. */
function hideIn(twin: GraphQLSchema, hidden: ReadonlySet<string>): void {
  for (const type of Object.values(twin.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith('__')) continue;
    for (const field of Object.values(type.getFields())) {
      const resolve = field.resolve as GraphQLFieldResolver<unknown, unknown>;
      field.resolve = (...args) => {
        if (hidden.has(keysOf(args[3].path).join('.'))) throw new GraphQLError('hidden');
        return resolve(...args);
      };
    }
  }
}

interface Incremental {
  readonly initialResult: Payload;
  readonly subsequentResults: AsyncIterable<Payload>;
}

/** The payloads of graphql-js for the same document, where hidden fields are fields that fail. */
async function payloadsOfTwin(
  twin: GraphQLSchema,
  { query, variables, accept }: Case,
  oracle: Oracle,
  hidden: readonly string[],
): Promise<Payload[]> {
  hideIn(twin, new Set(hidden));
  const isLegacy = accept.includes('2022') || (!accept.includes('v0.2') && query.includes('@stream'));
  const name = isLegacy ? 'legacyExecuteIncrementally' : 'experimentalExecuteIncrementally';
  const execute = Reflect.get(graphql, name) as (args: object) => Promise<Payload | Incremental>;
  const result = await execute({
    schema: twin,
    document: parse(query),
    variableValues: variables,
    typeResolver: ({ __typename }: { readonly __typename: string }) => {
      if (oracle.hides(__typename)) throw new GraphQLError('hidden');
      return __typename;
    },
  });
  if (!('initialResult' in result)) return [result];
  const payloads = [result.initialResult];
  for await (const payload of result.subsequentResults) payloads.push(payload);
  return JSON.parse(JSON.stringify(payloads));
}

/** The places in `given` whose value is another one than in `allowed`, and not null. */
function more(given: unknown, allowed: unknown, path = ''): readonly string[] {
  if (given === null) return [];
  if (typeof given !== 'object') return given === allowed ? [] : [path];
  return Object.entries(given as object).flatMap(([key, value]) =>
    more(value, Object(allowed)[key], `${path}.${key}`),
  );
}

const places = (errors: readonly object[]): string[] => [
  ...new Set(errors.map((error) => String((error as GraphQLError).path?.join('.'))).sort()),
];

const summary = ({ data, errors, hasFailedParts }: Merged) => ({
  data,
  places: places(errors),
  hasFailedParts,
});

function canMerge(payloads: Payload[]): boolean {
  try {
    return merge(structuredClone(payloads)).data !== undefined;
  } catch {
    return false;
  }
}

interface Counts {
  compared: number;
  incremental: number;
  failedParts: number;
  refused: number;
}

async function check(each: Case, counts: Counts): Promise<void> {
  const { schema, document, variables, caller, accept } = each;
  const scopes = caller === undefined ? null : caller.split(' ').filter(Boolean);
  const who = { scopes, policies: policiesOf(scopes) };
  const kept = new Oracle(schema, document, variables, who, true);
  const whole = kept.judge();
  const propagated = new Oracle(schema, document, variables, who).judge();
  const code = scopes === null ? 'UNAUTHENTICATED' : 'FORBIDDEN';
  const payloadsOfOracle = each.twin && (await payloadsOfTwin(each.twin, each, kept, whole.hidden));
  // In the format of 2022 a field may be null in one part and an object in another: clients cannot merge that.
  if (payloadsOfOracle !== undefined && !canMerge(payloadsOfOracle)) return;
  const expected = payloadsOfOracle && merge(payloadsOfOracle);
  const params = { query: each.query, variables };

  const checkMerged = (payloads: readonly Payload[]): Merged => {
    const merged = merge(payloads);
    // Nobody sees what is hidden.
    expect(more(merged.data, whole.data)).toEqual([]);
    expect(merged.errors.every((error) => (error as GraphQLError).extensions['code'] === code)).toBe(true);
    if (expected !== undefined) expect(summary(merged)).toEqual(summary(expected));
    else expect(merged.data).toEqual(propagated.data);
    if (whole.hidden.length === 0)
      expect(merged).toEqual({ data: whole.data, errors: [], hasFailedParts: false });
    counts.compared++;
    if (payloads.length > 1) counts.incremental++;
    if (merged.hasFailedParts) counts.failedParts++;
    return merged;
  };

  for (const path of ['/compiled', '/compiled', '/graphql-js'] as const) {
    const { status, payloads } = await send(path, params, caller, accept);
    expect(status).toBe(200);
    checkMerged(payloads);
  }
  const { status, payloads } = await send('/reject', params, caller, accept);
  if (status === 200) {
    // What was found in a later part is null there.
    expect(payloads[0]).not.toHaveProperty('errors');
    checkMerged(payloads);
  } else {
    expect(status).toBe(scopes === null ? 401 : 403);
    expect(payloads).toEqual([{ errors: expect.any(Array) }]);
    counts.refused++;
  }
}

const bytesOf = (seed: number): Uint8Array =>
  Uint8Array.from({ length: 12_000 }, (_, index) => hash(String(index), seed));

/** A random document, and the same with `@defer` and `@stream`. */
function randomDeferred(
  choices: Choices,
  schema: GraphQLSchema,
): Record<'original' | 'document', DocumentNode> {
  for (;;) {
    const original = parse(randomDocument(choices, schema));
    const document = withDirectives(schema, original, choices);
    if (validate(schema, document).length === 0) return { original, document };
  }
}

it(`nobody sees a field in a part of a response that the oracle hides, in ${SCHEMAS} random schemas`, async () => {
  const counts: Counts = { compared: 0, incremental: 0, failedParts: 0, refused: 0 };
  for (let seed = FIRST; seed < FIRST + SCHEMAS; seed++) {
    const bytes = bytesOf(seed);
    const choices = readChoices(bytes);
    const schema = withIncremental(randomSchema(choices));
    const isAsync = choices.chance(100);
    addResolvers(schema, isAsync);
    server.use(handlersOf(schema));
    for (let index = 0; index < DOCUMENTS; index++) {
      const { original, document } = randomDeferred(choices, schema);
      const variables = randomVariables(choices);
      const accept = choices.pick(ACCEPT);
      for (let count = 0; count < CALLERS; count++) {
        const caller = randomCaller(choices);
        const twin = V17 ? withIncremental(randomSchema(readChoices(bytes))) : undefined;
        if (twin !== undefined) addResolvers(twin, isAsync);
        const each = { schema, document: original, twin, query: print(document), variables, caller, accept };
        try {
          await check(each, counts);
        } catch (error) {
          const { query } = each;
          const details = JSON.stringify({ seed, caller, accept, query, variables, isAsync });
          throw new Error(`${(error as Error).message}\n${details}`, { cause: error });
        }
      }
    }
  }
  expect(counts.compared).toBeGreaterThan(SCHEMAS * DOCUMENTS);
  expect(counts.refused).toBeGreaterThan(SCHEMAS / 8);
  if (!V17) return;
  expect(counts.incremental).toBeGreaterThan(SCHEMAS);
  expect(counts.failedParts).toBeGreaterThan(0);
}, 300_000);
