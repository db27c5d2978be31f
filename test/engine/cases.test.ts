/** @tags graphql */
import type { GraphQLSchema } from 'graphql';
import type { ExecutionOutcome } from '../../src/execution/types.ts';
import { abstract } from './cases/abstract.ts';
import type { Case, Group } from './cases/case.ts';
import { directives } from './cases/directives.ts';
import { executing } from './cases/executing.ts';
import { fields } from './cases/fields.ts';
import { enums, inputs } from './cases/inputs.ts';
import { introspection, propagation } from './cases/introspection.ts';
import { lists } from './cases/lists.ts';
import { propagatedNulls } from './cases/nulls.ts';
import { operationTypes } from './cases/operations.ts';
import { values } from './cases/values.ts';
import { engines, prepare, seen, settingsOf } from './compare.ts';

const GROUPS: readonly Group[] = [
  fields,
  values,
  directives,
  propagatedNulls,
  lists,
  executing,
  operationTypes,
  inputs,
  enums,
  introspection,
  propagation,
  ...abstract,
];

async function respond(
  engine: (typeof engines)['compiled'],
  schema: GraphQLSchema,
  { query, variables, root, context, operationName, settings }: Case,
): Promise<ExecutionOutcome> {
  const run = prepare(engine, schema, query, settingsOf(settings), operationName);
  const rootValue = typeof root === 'function' ? root() : root;
  return run({ rootValue, variableValues: variables, contextValue: context });
}

describe.each(GROUPS)('$title', ({ title: topic, schema, cases }) => {
  it.each(cases)(`the engine $title (${topic})`, async (wanted) => {
    const reference = await respond(engines.graphqlJs, schema, wanted);
    expect(shown(reference)).toEqual({ data: wanted.data, errors: wanted.errors ?? [] });
    const ours = await respond(engines.compiled, schema, wanted);
    expect(seen(ours)).toBe(seen(reference));
  });
});

it('the titles of cases are unique in each group', () => {
  for (const { cases } of GROUPS) expect(new Set(cases.map(({ title }) => title)).size).toBe(cases.length);
});

/** A response in the form of a case. */
function shown({ body, errors }: ExecutionOutcome): { data: unknown; errors: string[] } {
  const { data } = JSON.parse(body.toString());
  const lines = errors.map(({ message, path, locations }) =>
    [message, path?.join('.'), locations?.map(({ line, column }) => `${line}:${column}`).join() ?? ''].join(
      ' ',
    ),
  );
  return { data, errors: lines };
}

describe('the compiled engine', () => {
  it('the engine returns synchronously if every resolver does', () => {
    const run = prepare(engines.compiled, fields.schema, '{ text nodes { name } }');
    expect(run({ rootValue: { text: 'a', nodes: [{ name: 'b' }] } })).toMatchObject({ kind: 'data' });
  });
});
