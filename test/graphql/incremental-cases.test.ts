/** @tags graphql engine */
import * as graphql from 'graphql';
import { type ExecutionArgs, execute, type GraphQLError, parse, visit } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { listen } from '../kit.ts';
import { open } from '../live/serve-streams.ts';
import { until } from '../until.ts';
import { CASES, casesSchema, rootValue } from './incremental-cases.ts';
import { V17 } from './incremental-schema.ts';
import { jsonLines, type Merged, merge, type Payload } from './merge.ts';

const schema = casesSchema();
const variableValues = { yes: true, no: false };
let url: string;

const FORMATS = {
  'v0.2': 'experimentalExecuteIncrementally',
  '20220824': 'legacyExecuteIncrementally',
} as const;
const ACCEPT = {
  'v0.2': 'multipart/mixed;incrementalSpec=v0.2',
  '20220824': 'multipart/mixed;deferSpec=20220824',
};

interface Incremental {
  readonly initialResult: Payload;
  readonly subsequentResults: AsyncIterable<Payload>;
}

/** Executes a document with graphql-js alone. */
async function reference(query: string, format: keyof typeof FORMATS): Promise<Payload[]> {
  const run: (args: ExecutionArgs) => unknown = Reflect.get(graphql, FORMATS[format]);
  const result = (await run({ schema, document: parse(query), rootValue, variableValues })) as
    | Incremental
    | Payload;
  if (!('initialResult' in result)) return [JSON.parse(JSON.stringify(result))];
  const payloads: Payload[] = [result.initialResult];
  for await (const payload of result.subsequentResults) payloads.push(payload);
  return JSON.parse(JSON.stringify(payloads));
}

/** The response of the middleware, which is a single JSON text if nothing is deferred. */
async function served(query: string, accept: string): Promise<Payload[]> {
  const params = { query, variables: variableValues };
  const reading = await open(url, { params, headers: { accept: `${accept}, application/json` } });
  await until(() => reading.ended);
  return jsonLines(reading.body);
}

const sorted = (values: readonly unknown[]): string[] => values.map((value) => JSON.stringify(value)).sort();

/** Merges a copy; undefined if a part belongs to an object that an error has made null. */
function mergeCopy(payloads: readonly Payload[]): Merged | undefined {
  try {
    return merge(structuredClone(payloads));
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** The members of the payloads that do not depend on how the execution groups them. */
function contentOf(payloads: readonly Payload[]): object {
  const merged = mergeCopy(payloads);
  return {
    ...(merged && { ...merged, errors: sorted(merged.errors) }),
    first: payloads[0]?.data,
    pending: sorted(payloads.flatMap(({ pending = [] }) => pending.map(({ id: _, ...rest }) => rest))),
    failed: sorted(payloads.flatMap(({ completed = [] }) => completed.flatMap(({ errors = [] }) => errors))),
    hasNext: payloads.at(-1)?.hasNext,
  };
}

/** The response without `@defer` and `@stream`. */
async function whole(query: string) {
  const document = visit(parse(query), {
    Directive: ({ name }) => (name.value === 'defer' || name.value === 'stream' ? null : undefined),
  });
  // graphql 17 refuses variables that are not used, but only in validation.
  const plain = new graphql.GraphQLSchema({ ...schema.toConfig(), directives: graphql.specifiedDirectives });
  const { data, errors } = await execute({ schema: plain, document, rootValue, variableValues });
  return JSON.parse(JSON.stringify({ data, errors: errors ?? [] })) as {
    data: unknown;
    errors: GraphQLError[];
  };
}

if (V17) describe('documents of the situations that graphql-js tests', tests);
else
  it('the schema of the situations is valid with graphql 16', () => {
    expect(graphql.validateSchema(schema)).toEqual([]);
  });

function tests(): void {
  beforeAll(async () => {
    process.env['NODE_ENV'] = 'production';
    const formatError = (_: unknown, error: GraphQLError) => error.toJSON();
    const handler = graphqlHTTP(schema, { rootValue, graphiql: false, onError: false, formatError });
    ({ url } = await listen((req, res) => handler(req, res)));
  });
  describe.each(Object.keys(FORMATS) as (keyof typeof FORMATS)[])('in the format %s', (format) => {
    it.each(Object.entries(CASES))('graphqlHTTP sends what graphql-js returns for %s', async (_, query) => {
      const payloads = await served(query, ACCEPT[format]);
      expect(contentOf(payloads)).toEqual(contentOf(await reference(query, format)));
      const pending = payloads.flatMap((payload) => payload.pending ?? []).map(({ id }) => id);
      const completed = payloads.flatMap((payload) => payload.completed ?? []).map(({ id }) => id);
      expect([...completed].sort()).toEqual([...pending].sort());
      const merged = mergeCopy(payloads);
      if (merged?.errors.length === 0) expect(merged.data).toEqual((await whole(query)).data);
    });
  });
}
