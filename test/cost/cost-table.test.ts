/** @tags graphql */
import {
  buildSchema,
  type DocumentNode,
  type GraphQLSchema,
  getOperationAST,
  parse,
  validate,
} from 'graphql';
import { compileCost, evaluate } from '../../src/cost/operation-cost.ts';

const DEFAULTS = { listSize: 100, mutation: 10, requiresSlicing: true };

function costOf(
  schema: GraphQLSchema,
  text: string,
  variables: Record<string, unknown> = {},
  defaults = DEFAULTS,
): number {
  const document: DocumentNode = parse(text);
  expect(validate(schema, document)).toEqual([]);
  const operation = getOperationAST(document);
  if (operation === null || operation === undefined) throw new Error('no operation');
  return evaluate(compileCost({ schema, document, operation }, defaults), variables);
}

const DIRECTIVES = `
  directive @cost(weight: String!) on ARGUMENT_DEFINITION | ENUM | FIELD_DEFINITION | INPUT_FIELD_DEFINITION | OBJECT | SCALAR
  directive @listSize(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!],
    requireOneSlicingArgument: Boolean = true) on FIELD_DEFINITION
`;

describe('costs without directives', () => {
  const schema = buildSchema(`
    type Query { name(id: ID): String, count: Int, shop: Shop, sellable: Sellable, any: Any, shops: [Shop], years: [Int]
      search(by: Filter): String, found(by: Filter): [Book], matrix: [[Book!]!]! }
    type Mutation { rename: Int }
    type Subscription { added: Book }
    type Shop { open: Int, books: [Book] }
    interface Sellable { price: String }
    type Book implements Sellable { pages: Int, price: String }
    union Any = Shop | Book
    input Filter { either: Range, or: Range, all: [Range!] }
    input Range { from: ID }
  `);

  it.each([
    ['scalars cost nothing', '{ name(id: 2) count }', 0],
    ['a mutation costs 10', 'mutation { rename }', 10],
    ['an object costs 1', '{ shop { open } }', 1],
    ['an interface costs 1', '{ sellable { price } }', 1],
    ['a union costs 1', '{ any { ... on Shop { open } ... on Book { price } } }', 1],
    ['a list costs its items', '{ shops { open } }', 100],
    ['a list of scalars costs nothing', '{ years }', 0],
    ['nested lists multiply', '{ shops { books { price } } }', 100 * (1 + 100)],
    ['a list of lists multiplies', '{ matrix { price } }', 100 * 100],
    [
      'input objects cost 1 each',
      '{ search(by: { either: { from: 1 }, all: [{ from: 2 }, { from: 3 }] }) }',
      4,
    ],
    ['input objects are not multiplied', '{ found(by: { or: { from: 1 } }) { pages } }', 102],
    ['a subscription costs its fields', 'subscription { added { pages } }', 1],
    ['a skipped field costs nothing', '{ count shops @skip(if: true) { open } }', 0],
    ['a field that is not included costs nothing', '{ count shops @include(if: false) { open } }', 0],
    [
      'the most expensive type of a union counts',
      '{ any { ... on Shop { books { pages } } ... on Book { pages } } }',
      101,
    ],
    [
      'fragments on an interface and its types add up',
      '{ sellable { price ...A ...B } } fragment A on Book { pages } fragment B on Sellable { price }',
      1,
    ],
    [
      'a fragment costs at each spread',
      '{ a: shop { ...S } b: shop { ...S } } fragment S on Shop { books { pages } }',
      202,
    ],
    ['introspection costs nothing', '{ __typename __schema { types { name } } }', 0],
  ])('%s', (_, text, expected) => {
    expect(costOf(schema, text)).toBe(expected);
  });

  it('variables of input objects cost as much as literals', () => {
    const text =
      'query ($by: Filter, $one: Range!) { a: search(by: $by) b: search(by: { all: [$one, $one] }) }';
    const variables = { by: { either: { from: '1' }, all: [{}, {}] }, one: { from: '1' } };
    expect(costOf(schema, text, variables)).toBe(4 + 3);
    expect(costOf(schema, text, { one: {} })).toBe(1 + 2);
    expect(costOf(schema, text, { by: null, one: {}, unknown: { deep: {} } })).toBe(3);
  });

  it('the variables of @skip and @include remove a field, with their defaults', () => {
    const text =
      'query ($yes: Boolean!, $no: Boolean = true) { a: shop @include(if: $yes) { open } b: shop @skip(if: $no) { open } }';
    expect(costOf(schema, text, { yes: true })).toBe(1);
    expect(costOf(schema, text, { yes: false, no: false })).toBe(1);
    expect(costOf(schema, text, { yes: true, no: false })).toBe(2);
    expect(costOf(schema, text, { yes: false })).toBe(0);
  });
});

describe('costs with directives', () => {
  const schema = buildSchema(`${DIRECTIVES}
    type Query {
      weighted: Int @cost(weight: "5")
      argument(value: Int @cost(weight: "10")): Int
      kind: Kind
      input(value: Weighted): Int
      scalar: Slow
      object: Costly
      assumed: [String!] @listSize(assumedSize: 2000, requireOneSlicingArgument: false)
      page(first: Int = 10): Page @listSize(slicingArguments: ["first"], sizedFields: ["items"], requireOneSlicingArgument: true)
      pages(first: Int, last: Int): Page @listSize(slicingArguments: ["first", "last"], sizedFields: ["items", "edges"])
      either(first: Int, last: Int): [Costly] @listSize(slicingArguments: ["first", "last"], assumedSize: 3, requireOneSlicingArgument: false)
      nested(by: Paging): [Costly] @listSize(slicingArguments: ["by.page.size"], assumedSize: 7)
      ids(ids: [ID!]): [Costly] @listSize(slicingArguments: ["ids"])
      paged(by: Paged): [Costly] @listSize(slicingArguments: ["by.size"])
      named: Named
      cheaper: Costly @cost(weight: "-2.5")
      discount(approx: Boolean @cost(weight: "-3"), more: Boolean @cost(weight: "-30")): Int @cost(weight: "5")
      node: Node
    }
    enum Kind @cost(weight: "15") { A B }
    scalar Slow @cost(weight: "30")
    input Weighted { value: Int @cost(weight: "20") }
    input Paging { page: Size } input Size { size: Int }
    type Costly @cost(weight: "40") { id: ID, parts: [Costly] }
    type Page { items: [Item], edges: [Item!]!, total: Int, other: [Item] }
    type Item { id: ID }
    input Paged { size: Int = 50 }
    interface Named { items: [Costly], sliced(first: Int): [Costly] @listSize(slicingArguments: ["first"]) }
    type Short implements Named {
      items: [Costly] @listSize(assumedSize: 2)
      sliced(first: Int): [Costly] @listSize(slicingArguments: ["first"])
    }
    type Long implements Named { items: [Costly] @listSize(assumedSize: 3000), sliced(first: Int): [Costly] }
    interface Node { id: ID }
    type User implements Node { id: ID @cost(weight: "9") }
    type Post implements Node { id: ID @cost(weight: "2") }
  `);
  const ALL = (page: string, head = ''): string =>
    `${head} { weighted argument(value: 3) kind input(value: { value: 10 }) scalar object { id } assumed ${page} { ...I } }
     fragment I on Page { items { id } }`;

  it.each([
    ['a weight of each kind of element', ALL('page(first: 5)'), {}, 5 + 10 + 15 + 21 + 30 + 40 + 1 + 5],
    ['the default of a slicing argument', ALL('page'), {}, 132],
    ['a variable as slicing argument', ALL('page(first: $n)', 'query ($n: Int)'), { n: 5 }, 127],
    ['the default of a variable', ALL('page(first: $n)', 'query ($n: Int = 7)'), {}, 129],
    [
      'the default of a slicing argument whose variable is missing',
      ALL('page(first: $n)', 'query ($n: Int)'),
      {},
      132,
    ],
    ['the default of an input field', '{ paged(by: {}) { id } }', {}, 1 + 50 * 40],
    [
      'the default of an input field in a variable',
      'query ($by: Paged) { paged(by: $by) { id } }',
      { by: {} },
      1 + 50 * 40,
    ],
    [
      'the default of an input field whose variable is missing',
      'query ($size: Int) { paged(by: { size: $size }) { id } }',
      {},
      1 + 50 * 40,
    ],
    ['a single value of a list', '{ ids(ids: "a") { id } }', {}, 40],
    [
      'a single value of a list variable',
      'query ($ids: [ID!]) { ids(ids: $ids) { id } }',
      { ids: '900' },
      40,
    ],
    ['the longest list of the types of an interface', '{ named { items { id } } }', {}, 1 + 3000 * 40],
    [
      'the slicing argument of an interface and its types once',
      '{ named { sliced(first: 3) { id } } }',
      {},
      1 + 3 * 40,
    ],
    ['sized fields only', '{ page(first: 5) { items { id } other { id } } }', {}, 1 + 5 + 100],
    ['several sized fields', '{ pages(last: 4) { items { id } edges { id } total } }', {}, 1 + 4 + 4],
    ['the largest of several slicing arguments', '{ either(first: 2, last: 6) { id } }', {}, 240],
    ['the assumed size without slicing argument', '{ either { id } }', {}, 120],
    ['a nested slicing argument', '{ nested(by: { page: { size: 2 } }) { id } }', {}, 2 + 80],
    [
      'a nested slicing argument of a variable',
      'query ($by: Paging) { nested(by: $by) { id } }',
      { by: { page: { size: 3 } } },
      2 + 120,
    ],
    ['a nested slicing argument that is missing', '{ nested { id } }', {}, 280],
    ['the length of a list', '{ ids(ids: [1, 2, 3]) { id } }', {}, 120],
    [
      'the length of a list variable',
      'query ($ids: [ID!]) { ids(ids: $ids) { id } }',
      { ids: ['1', '2'] },
      80,
    ],
    ['no negative weight of a field', '{ cheaper { id } object { id } }', {}, 40],
    ['a negative weight of an argument', '{ a: discount(approx: true) b: discount }', {}, 5 - 3 + 5],
    [
      'a negative weight of a variable',
      'query ($approx: Boolean) { a: discount(approx: $approx) b: discount }',
      { approx: false },
      5 - 3 + 5,
    ],
    ['no negative sum of a field and its arguments', '{ discount(more: true) object { id } }', {}, 40],
    [
      'no negative sum of a field and its variables',
      'query ($more: Boolean) { a: discount(more: $more) b: discount(more: $more) object { id } }',
      { more: true },
      40,
    ],
    ['the selections of a field with a negative weight', '{ cheaper { parts { id } } }', {}, 100 * 40],
    ['an empty list as slicing argument', '{ ids(ids: []) { id } }', {}, 0],
    ['a negative slicing argument like none', '{ page(first: -5) { items { id } } }', {}, 1 + 100],
    [
      'a large negative slicing argument of a variable',
      'query ($n: Int) { page(first: $n) { items { id } } }',
      { n: -500 },
      1 + 500,
    ],
    ['the highest weight of the types of an interface', '{ node { id } }', {}, 1 + 9],
    ['the weight of one type of an interface', '{ node { ... on Post { id } } }', {}, 1 + 2],
  ])('the cost contains %s', (_, text, variables, expected) => {
    expect(costOf(schema, text, variables)).toBe(expected);
  });

  it.each([
    ['{ pages { total } }', {}, 'has 0 of the arguments "first", "last"; exactly one is required'],
    ['{ pages(first: 1, last: 1) { total } }', {}, 'has 2 of the arguments'],
    [
      'query ($a: Int, $b: Int) { pages(first: $a, last: $b) { total } }',
      { a: 1, b: 2 },
      'has 2 of the arguments',
    ],
    ['query ($a: Int) { pages(first: $a) { total } }', { a: null }, 'has 0 of the arguments'],
  ])('%s is refused, since exactly one slicing argument is required', (text, variables, message) => {
    expect(() => costOf(schema, text, variables)).toThrow(message);
    expect(costOf(schema, text, variables, { ...DEFAULTS, requiresSlicing: false })).toBe(1);
  });

  it('a weight may be a whole number, as in the directives of Apollo and Grafbase', () => {
    const apollo = buildSchema(
      `directive @cost(weight: Int!) on FIELD_DEFINITION type Query { a: Int @cost(weight: 12) }`,
    );
    expect(costOf(apollo, '{ a }')).toBe(12);
  });

  it('directives may be in extensions, in the forms of @graphql-tools/utils and of Pothos', () => {
    const code = buildSchema('type Query { a: Int b: Int c: Int }');
    const fields = code.getQueryType()?.getFields() ?? {};
    const extend = (name: string, extensions: object): void =>
      void Object.assign(fields[name] as object, { extensions });
    extend('a', { directives: { cost: { weight: '2' } } });
    extend('b', { directives: [{ name: 'cost', args: { weight: 3 } }] });
    extend('c', { cost: { weight: 4 } });
    expect(costOf(code, '{ a b c }')).toBe(9);
  });
});
