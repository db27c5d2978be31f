/** @tags once slow */
import {
  type DocumentNode,
  type GraphQLField,
  getNamedType,
  getOperationAST,
  isCompositeType,
  isListType,
  isNonNullType,
  parse,
  visit,
} from 'graphql';
import { getComplexity } from 'graphql-query-complexity';
import { compileCost, evaluate } from '../../src/cost/operation-cost.ts';
import { type Choices, hash, readChoices } from '../engine/choices.ts';
import { randomQuery } from '../engine/random-query.ts';
import { randomSchema } from '../engine/random-schema.ts';
import { TEST_ALL } from '../test-all.ts';

const LIST_SIZE = 3;
const CASES = TEST_ALL ? 200 : 100;

/** The number of values of a field. */
function itemsOf({ type }: GraphQLField<unknown, unknown>): number {
  let items = 1;
  for (let inner: unknown = type; isListType(inner) || isNonNullType(inner); inner = inner.ofType) {
    if (isListType(inner)) items *= LIST_SIZE;
  }
  return items;
}

/** Removes the arguments of fields, which graphql-query-complexity does not price. */
const withoutArguments = (document: DocumentNode): DocumentNode =>
  visit(document, { Field: (node) => ({ ...node, arguments: [] }) });

/** Random choices with a seed. */
function choicesOf(seed: number): Choices {
  const bytes = new Uint8Array(4000);
  for (let index = 0; index < bytes.length; index++) bytes[index] = hash(String(index), seed);
  return readChoices(bytes);
}

it(`costs without directives equal those of graphql-query-complexity in ${CASES} random cases`, () => {
  let compared = 0;
  let equal = 0;
  for (let seed = 0; seed < CASES; seed++) {
    const choices = choicesOf(seed);
    const { schema } = randomSchema(choices);
    const { text, variables } = randomQuery(choices, schema);
    const document = withoutArguments(parse(text));
    const operation = getOperationAST(document);
    if (operation === null || operation === undefined || /__schema|__type\b/.test(text)) continue;
    const values = variables[0] as Record<string, unknown>;
    const estimators = [
      ({ field, childComplexity }: { field: GraphQLField<unknown, unknown>; childComplexity: number }) =>
        itemsOf(field) * (childComplexity + (isCompositeType(getNamedType(field.type)) ? 1 : 0)),
    ];
    let expected: number;
    try {
      expected = getComplexity({ schema, query: document, variables: values, estimators });
    } catch {
      // Its variables are invalid.
      continue;
    }
    const defaults = { listSize: LIST_SIZE, mutation: 0, requiresSlicing: true };
    const cost = evaluate(compileCost({ schema, document, operation }, defaults), values);
    compared += 1;
    if (cost === expected) equal += 1;
    // It adds the most expensive type of each nested fragment, also if no object has both types.
    expect(cost).toBeLessThanOrEqual(expected);
    if (!/\.\.\./.test(text)) expect(cost).toBe(expected);
  }
  expect(compared).toBeGreaterThan(CASES / 2);
  expect(equal).toBeGreaterThan(compared * 0.9);
});
