/** @tags once */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { buildSchema } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';

const create = () => {
  const rootValue = { hello: 'world', deep: () => rootValue };
  return graphqlHTTP(buildSchema('type Query { hello: String deep: Query }'), { rootValue });
};

let documents = 0;
/** A new text of more than 2000 characters, with three tokens per field. */
const documentOf = (fields: number): string => {
  const selections = Array.from({ length: fields }, (_, index) => `a${index}: hello`);
  return `{ deep { ${selections.join(' ')} } } # ${documents++} ${'x'.repeat(2000)}`;
};

/** Sends a new document. Returns the iterations of the event loop between its parsing and its validation. */
async function iterationsToValidate(fields: number, handler = create()): Promise<number> {
  let iterations = 0;
  let running = true;
  const iterate = (): void => {
    iterations++;
    if (running) setImmediate(iterate);
  };
  const parsed: number[] = [];
  const validated: number[] = [];
  const onParse = (): unknown => parsed.push(iterations);
  const onValidate = (): unknown => validated.push(iterations);
  setImmediate(iterate);
  subscribe('espalier:graphql:parse', onParse);
  subscribe('espalier:graphql:validate', onValidate);
  try {
    const query = documentOf(fields);
    const { body } = await request(handler).post('/graphql').send({ query }).expect(200);
    expect(Object.keys(body.data.deep)).toHaveLength(fields);
  } finally {
    running = false;
    unsubscribe('espalier:graphql:parse', onParse);
    unsubscribe('espalier:graphql:validate', onValidate);
  }
  // Work that prepares the process is not reported as a document.
  expect([parsed.length, validated.length]).toEqual([1, 1]);
  return Number(validated[0]) - Number(parsed[0]);
}

it('graphqlHTTP runs other work before it validates a large document', async () => {
  expect(await iterationsToValidate(500)).toBeGreaterThan(0);
});
