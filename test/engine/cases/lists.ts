import { type Case, fails, type Group, later, rejects, schemaOf, V17 } from './case.ts';

const SDL = /* GraphQL */ `
  type Item { n: Int must: Int! }
  type Query {
    list: [Int] mustList: [Int]! listOfMust: [Int!] allMust: [Int!]!
    items: [Item!] deep: [[[Int!]!]] texts: [String]
  }
`;

const NULL = 'Cannot return null for non-nullable field Query.';

/** Values of a list, the data they become in a nullable list, and the message of their error. */
type Row = readonly [
  values: readonly unknown[] | null,
  data: readonly unknown[] | null,
  error: string | undefined,
];

const FIELDS = [
  { name: 'list', item: true, whole: true },
  { name: 'mustList', item: true, whole: false },
  { name: 'listOfMust', item: false, whole: true },
  { name: 'allMust', item: false, whole: false },
];

const ROWS: Readonly<Record<string, Row>> = {
  values: [[1, 2], [1, 2], undefined],
  'no items': [[], [], undefined],
  'a null': [[1, null, 2], [1, null, 2], undefined],
  'an undefined': [[1, undefined, 2], [1, null, 2], undefined],
  'an error': [[1, new Error('bad'), 2], [1, null, 2], 'bad'],
  'a wrong value': [[1, 'x', 2], [1, null, 2], 'Int cannot represent non-integer value: "x"'],
};

const SHAPES: Readonly<Record<string, (values: readonly unknown[]) => unknown>> = {
  synchronous: (values) => values,
  promised: (values) => later(values),
  'of promises': (values) =>
    values.map((value) => (value instanceof Error ? Promise.reject(value) : later(value))),
};

/** The list, or the result of an error in an item that cannot be null. */
function expected(
  { name, item, whole }: (typeof FIELDS)[number],
  [values, data, error]: Row,
): Pick<Case, 'data' | 'errors'> {
  const at = values?.findIndex((_, index) => data?.[index] === null) ?? -1;
  if (at < 0) return { data: { [name]: data } };
  const message = error ?? `${NULL}${name}.`;
  const errors = error !== undefined || !item ? [`${message} ${name}.${at} 1:3`] : [];
  if (item) return { data: { [name]: data }, errors };
  return { data: whole ? { [name]: null } : null, errors };
}

const nullability: Case[] = FIELDS.flatMap((field) =>
  Object.entries(ROWS).flatMap(([what, row]) =>
    Object.entries(SHAPES).map(([how, shape]) => ({
      title: `completes ${field.name} with ${what}, ${how}`,
      query: `{ ${field.name} }`,
      root: () => ({ [field.name]: () => shape(row[0] ?? []) }),
      ...expected(field, row),
    })),
  ),
);

const wholes: Case[] = FIELDS.flatMap(({ name, whole }) => [
  {
    title: `completes ${name} that is null`,
    query: `{ ${name} }`,
    root: { [name]: later(null) },
    ...(whole ? { data: { [name]: null } } : { data: null, errors: [`${NULL}${name}. ${name} 1:3`] }),
  },
  {
    title: `completes ${name} that fails`,
    query: `{ ${name} }`,
    root: { [name]: rejects('whole') },
    data: whole ? { [name]: null } : null,
    errors: [`whole ${name} 1:3`],
  },
]);

function* generated(): Generator<unknown> {
  yield 'two';
  yield 4;
  yield later(true);
}

const passed = (..._all: unknown[]): unknown => [..._all].values();

const iterables: Case[] = [
  {
    title: 'completes a Set',
    query: '{ texts }',
    root: { texts: new Set(['apple', 'banana', 'apple']) },
    data: { texts: ['apple', 'banana'] },
  },
  {
    title: 'completes a generator',
    query: '{ texts }',
    root: { texts: generated },
    data: { texts: ['two', '4', 'true'] },
  },
  {
    title: 'completes an iterator',
    query: '{ texts }',
    root: { texts: () => passed('a', 'b') },
    data: { texts: ['a', 'b'] },
  },
  {
    title: 'refuses a string as a list',
    query: '{ texts }',
    root: { texts: 'Singular' },
    data: { texts: null },
    errors: ['Expected Iterable, but did not find one for field "Query.texts". texts 1:3'],
  },
  {
    title: 'handles an iterable that throws',
    query: '{ list }',
    root: {
      *list() {
        yield 1;
        throw new Error('half way');
      },
    },
    data: { list: null },
    errors: ['half way list 1:3'],
  },
  {
    title: 'propagates errors from items',
    query: '{ items { n must } }',
    root: { items: [{ n: 1, must: 1 }, later({ n: 2, must: fails('inner') })] },
    data: { items: null },
    errors: ['inner items.1.must 1:13'],
  },
  {
    title: 'completes nested lists',
    query: '{ deep }',
    root: { deep: [[[1], []], null, later([later([later(2)]), [3, null]]), [null]] },
    data: { deep: [[[1], []], null, null, null] },
    errors: [`${NULL}deep. deep.3.0 1:3`, `${NULL}deep. deep.2.1.1 1:3`],
  },
];

/** graphql 17 reads asynchronous iterables, 16 refuses them. */
const streamed = (
  title: string,
  field: string,
  list: () => unknown,
  of17: Pick<Case, 'data' | 'errors'>,
): Case => ({
  title: `completes an asynchronous iterable ${title}`,
  query: field === 'items' ? '{ items { n must } }' : `{ ${field} }`,
  root: () => ({ [field]: list }),
  ...(V17
    ? of17
    : {
        data: { [field]: null },
        errors: [`Expected Iterable, but did not find one for field "Query.${field}". ${field} 1:3`],
      }),
});

async function* streamOf(...values: unknown[]): AsyncGenerator<unknown> {
  for (const value of values) {
    if (value instanceof Error) throw value;
    yield value;
  }
}

const streams: Case[] = [
  streamed('of values', 'list', () => streamOf(1, '2', later(3)), { data: { list: [1, 2, 3] } }),
  streamed('without items', 'list', () => streamOf(), { data: { list: [] } }),
  streamed('that throws', 'list', () => streamOf(1, new Error('stream')), {
    data: { list: null },
    errors: ['stream list 1:3'],
  }),
  streamed('with a wrong value', 'list', () => streamOf(1, 'x', 3), {
    data: { list: [1, null, 3] },
    errors: ['Int cannot represent non-integer value: "x" list.1 1:3'],
  }),
  streamed('with null for a non-null item', 'listOfMust', () => streamOf(1, null, 3), {
    data: { listOfMust: null },
    errors: [`${NULL}listOfMust. listOfMust.1 1:3`],
  }),
  streamed('of objects', 'items', () => streamOf({ n: 1, must: later(2) }, later({ n: 3, must: 4 })), {
    data: {
      items: [
        { n: 1, must: 2 },
        { n: 3, must: 4 },
      ],
    },
  }),
  streamed(
    'of objects with failing fields',
    'items',
    () => streamOf({ n: 1, must: rejects('late') }, { n: 2, must: 2 }),
    {
      data: { items: null },
      errors: ['late items.0.must 1:13'],
    },
  ),
];

export const lists: Group = {
  title: 'lists',
  schema: schemaOf(SDL),
  cases: [...nullability, ...wholes, ...iterables, ...streams],
};
