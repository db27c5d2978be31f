/** @tags graphql */
import type { IncomingMessage, RequestListener } from 'node:http';
import { json } from 'node:stream/consumers';
import { envelop, useEngine, useSchema } from '@envelop/core';
import { useGenericAuth } from '@envelop/generic-auth';
import * as graphql from 'graphql';
import { type ExecutionResult, type GraphQLSchema, parse, validate } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { AuthOptions } from '../../types/auth.ts';
import { type Judgement, Oracle } from '../auth/oracle.ts';
import {
  addResolvers,
  policiesOf,
  randomCaller,
  randomDocument,
  randomSchema,
  randomVariables,
} from '../auth/random-case.ts';
import { scopesOf, serveInTurn } from '../auth/service.ts';
import { type Choices, hash, readChoices } from '../engine/choices.ts';

jest.setTimeout(300_000);

/** The oracle alone judges many more in auth/differential.test.ts. */
const SCHEMAS = 10;
const DOCUMENTS = 3;
const CALLERS = 4;
/** The seeds count from here. */
const FIRST = Number(process.env['SEED'] ?? 1);

const auth: AuthOptions<IncomingMessage> = {
  scopes: scopesOf,
  policies: (names, request) => policiesOf(scopesOf(request)).filter((name) => names.includes(name)),
};

/** A handler of @envelop/generic-auth, which removes what a caller may not see from the document. */
function genericAuth(schema: GraphQLSchema): RequestListener {
  const getEnveloped = envelop({
    plugins: [
      useEngine(graphql),
      useSchema(schema),
      useGenericAuth({
        mode: 'protect-granular',
        rejectUnauthenticated: false,
        resolveUserFn: ({ req }: { req: IncomingMessage }) => {
          const scope = scopesOf(req);
          return scope && { scope };
        },
        extractPolicies: ({ scope }: { scope: string[] }) => policiesOf(scope),
      }),
    ],
  });
  return async (req, res) => {
    const { query, variables: variableValues } = (await json(req)) as { query: string; variables: object };
    const proxy = getEnveloped({ req });
    const contextValue = await proxy.contextFactory();
    const result = await proxy.execute({
      schema: proxy.schema,
      document: proxy.parse(query),
      contextValue,
      variableValues,
    });
    res.end(JSON.stringify(result));
  };
}

const handlersOf = (schema: GraphQLSchema) => {
  const options = {
    httpCache: { defaultMaxAge: 60 },
    limits: { depth: 30 },
    graphiql: false,
    onError: false,
  } as const;
  const nulls = { ...options, auth: { ...auth, mode: 'null' } } as const;
  return {
    '/compiled': graphqlHTTP(schema, nulls),
    '/graphql-js': graphqlHTTP(schema, { ...nulls, engine: 'graphql-js' }),
    '/cached': graphqlHTTP(schema, { ...nulls, responseCache: { key: () => '' } }),
    '/reject': graphqlHTTP(schema, { ...options, auth }),
    '/reject-js': graphqlHTTP(schema, { ...options, auth, engine: 'graphql-js' }),
    '/envelop': genericAuth(schema),
  } satisfies Record<string, (...args: Parameters<RequestListener>) => unknown>;
};
type Path = keyof ReturnType<typeof handlersOf>;

const server = serveInTurn();

interface Answer {
  readonly status: number;
  readonly body: ExecutionResult;
}

async function send(path: Path, params: object, caller: string | undefined): Promise<Answer> {
  const response = await server.send(path, params, caller);
  return { status: response.status, body: (await response.json()) as ExecutionResult };
}

/** The places in `given` whose value is missing in `allowed`. */
function more(given: unknown, allowed: unknown, path: string): readonly string[] {
  if (given === null || given === undefined) return [];
  if (typeof given !== 'object') return given === allowed ? [] : [path];
  return Object.entries(given).flatMap(([key, value]) =>
    more(value, Object(allowed)[key], path === '' ? key : `${path}.${key}`),
  );
}

interface Compared {
  /** What is wrong with the answers to one request; undefined if nothing is. */
  readonly problem?: string | undefined;
  /** Whether the caller sees everything. */
  readonly isComplete?: boolean;
}

/** Compares the answers of all handlers to one request. */
async function compare(
  schema: GraphQLSchema,
  params: { readonly query: string; readonly variables: Record<string, unknown> },
  caller: string | undefined,
  isAsync: boolean,
): Promise<Compared> {
  const scopes = caller === undefined ? null : caller.split(' ').filter(Boolean);
  const who = { scopes, policies: policiesOf(scopes) };
  const judgement = new Oracle(schema, parse(params.query), params.variables, who).judge();
  const answerOf = (path: Path): Promise<Answer> => send(path, params, caller);
  for (const path of ['/compiled', '/graphql-js', '/cached', '/cached'] as const) {
    const problem = problemOf(await answerOf(path), judgement, scopes === null, isAsync);
    if (problem !== undefined) return { problem: `${path}: ${problem}` };
  }
  const statuses = new Set<number>();
  for (const path of ['/reject', '/reject-js'] as const) {
    const { status, body } = await answerOf(path);
    statuses.add(status);
    const isWhole =
      status === 200 && judgement.hidden.length === 0 && isEqual(body, { data: judgement.data });
    const isRefused = status === (scopes === null ? 401 : 403) && body.data === undefined;
    if (!isWhole && !isRefused) return { problem: `${path}: ${status} ${JSON.stringify(body)}` };
  }
  if (statuses.size > 1) return { problem: 'the engines differ in mode reject' };
  const { body } = await answerOf('/envelop');
  const leaked = more(judgement.data, body.data, '');
  if (leaked.length > 0) return { problem: `generic-auth hides ${leaked}: ${JSON.stringify(body)}` };
  return { isComplete: judgement.hidden.length === 0 };
}

const isEqual = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Compares an answer in mode 'null' with that of the oracle. */
function problemOf(
  { body: { data, errors = [] } }: Answer,
  judgement: Judgement,
  isAnonymous: boolean,
  isAsync: boolean,
): string | undefined {
  if (!isEqual(data, judgement.data))
    return `${JSON.stringify({ data, errors })}, expected ${JSON.stringify(judgement)}`;
  const code = isAnonymous ? 'UNAUTHENTICATED' : 'FORBIDDEN';
  if (errors.some(({ extensions }) => extensions?.['code'] !== code)) return JSON.stringify(errors);
  // Of promises that settle after a parent has become null, graphql 16 reports errors as well.
  const places = errors.map((error) => error.path?.join('.'));
  if (isAsync || isEqual(places.sort(), judgement.hidden.toSorted())) return undefined;
  return `errors at ${places}, expected ${judgement.hidden}`;
}

const choicesOf = (seed: number): Choices =>
  readChoices(Uint8Array.from({ length: 4000 }, (_, index) => hash(String(index), seed)));

beforeAll(() => {
  process.env['NODE_ENV'] = 'production';
});

it(`nobody sees a field that generic-auth or the naive oracle hides, in ${SCHEMAS} random schemas`, async () => {
  const counts = { compared: 0, complete: 0, hidden: 0 };
  for (let seed = FIRST; seed < FIRST + SCHEMAS; seed++) {
    const choices = choicesOf(seed);
    const schema = randomSchema(choices);
    const isAsync = choices.chance(64);
    addResolvers(schema, isAsync);
    server.use(handlersOf(schema));
    for (let index = 0; index < DOCUMENTS; index++) {
      const query = randomDocument(choices, schema);
      if (validate(schema, parse(query)).length > 0) continue;
      const params = { query, variables: randomVariables(choices) };
      for (let count = 0; count < CALLERS; count++) {
        const caller = randomCaller(choices);
        const compared = await compare(schema, params, caller, isAsync);
        const details = `seed ${seed}, caller ${caller}, ${JSON.stringify(params)}`;
        if (compared.problem !== undefined) throw new Error(`${compared.problem}\n${details}`);
        counts.compared++;
        if (compared.isComplete) counts.complete++;
        else counts.hidden++;
      }
    }
  }
  expect(counts.compared).toBeGreaterThan(SCHEMAS * DOCUMENTS * 2);
  expect(Math.min(counts.complete, counts.hidden)).toBeGreaterThan(SCHEMAS);
});
