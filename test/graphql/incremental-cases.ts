// The situations that graphql-js tests for @defer and @stream, as documents for one schema.
import { buildSchema, type GraphQLSchema } from 'graphql';
import { DIRECTIVES } from './incremental-schema.ts';

const tick = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));

const text = async (value: string | null): Promise<string | null> => {
  await tick();
  return value;
};

const fail = (message: string): never => {
  throw new Error(message);
};

async function* later<T>(...values: T[]): AsyncGenerator<T> {
  for (const value of values) {
    await tick();
    yield value;
  }
}

async function* failing<T>(...values: T[]): AsyncGenerator<T> {
  yield* values;
  fail('the generator fails');
}

/** An async iterable whose iterator has no `return`. */
function withoutReturn<T>(...values: T[]): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = later(...values);
      return { next: () => iterator.next() };
    },
  };
}

const deep = { a: 'a', b: () => text('b'), c: 'c', d: () => text('d') };
const inner = { deep, deepLater: async () => deep };

function item(id: number): object {
  return {
    id,
    name: `item ${id}`,
    slow: () => text(`slow ${id}`),
    fails: () => fail(`fails ${id}`),
    failsLater: () => tick().then(() => fail(`fails later ${id}`)),
    must: () => null,
    mustLater: () => text(null),
    mustIfOdd: () => (id % 2 === 1 ? `odd ${id}` : null),
    children: () => [item(id * 10 + 1), item(id * 10 + 2)],
    childrenLater: () => later(item(id * 10 + 1), item(id * 10 + 2)),
    none: () => [],
    noneLater: () => later(),
    missing: () => null,
    missingLater: () => text(null),
    inner,
    other: () => inner,
  };
}

const list = () => [item(1), item(2), item(3)];

export const rootValue = {
  item: item(1),
  itemLater: async () => item(1),
  items: list,
  itemsLater: () => later(item(1), item(2), item(3)),
  itemPromises: () => list().map((each) => tick().then(() => each)),
  strictItems: list,
  strictItemsLater: () => later(item(1), item(2), item(3)),
  strictPromises: () => [item(1), Promise.reject(new Error('no second item')), item(3)],
  allStrict: list,
  allStrictLater: () => later(item(1), item(2)),
  words: ['one', 'two', 'three'],
  wordPromises: () => ['one', text('two'), 'three'],
  wordsReversed: () => [
    tick()
      .then(tick)
      .then(() => 'one'),
    text('two'),
    'three',
  ],
  wordsFailing: () => ['one', Promise.reject(new Error('no second word')), 'three'],
  firstFailing: () => [Promise.reject(new Error('no first word')), 'two'],
  wordsLater: () => later('one', 'two', 'three'),
  wordsFailingLater: () => failing('one', 'two'),
  failsImmediately: () => failing(),
  wordsWithoutReturn: () => withoutReturn('one', 'two'),
  itemsWithoutReturn: () => withoutReturn(item(1), item(2)),
  strictWords: ['one', null, 'three'],
  strictWordsLater: () => later('one', null, 'three'),
  matrix: [['a', 'b'], ['c'], []],
  empty: [],
};

export function casesSchema(): GraphQLSchema {
  return buildSchema(`${DIRECTIVES}
    type Query {
      item: Item itemLater: Item items: [Item] itemsLater: [Item] itemPromises: [Item]
      strictItems: [Item!] strictItemsLater: [Item!] strictPromises: [Item!] allStrict: [Item!]! allStrictLater: [Item!]!
      words: [String] wordPromises: [String] wordsReversed: [String] wordsFailing: [String] firstFailing: [String]
      wordsLater: [String] wordsFailingLater: [String] failsImmediately: [String] wordsWithoutReturn: [String]
      itemsWithoutReturn: [Item!] strictWords: [String!] strictWordsLater: [String!] matrix: [[String]] empty: [String]
    }
    type Item {
      id: ID name: String slow: String fails: String failsLater: String must: String! mustLater: String!
      mustIfOdd: String! children: [Item] childrenLater: [Item] none: [Item] noneLater: [Item]
      missing: Item missingLater: Item inner: Inner other: Inner
    }
    type Inner { deep: Deep deepLater: Deep }
    type Deep { a: String b: String c: String d: String }
  `);
}

/** Documents by the situation that they test. Variables are `{ yes: true, no: false }`. */
export const CASES: Readonly<Record<string, string>> = {
  'a deferred fragment with scalars': '{ item { id ...N @defer } } fragment N on Item { name }',
  'a directive with if: false': '{ item { id ...N @defer(if: false) } } fragment N on Item { name }',
  'a directive with variables':
    'query ($yes: Boolean!, $no: Boolean!) { item { ... @defer(if: $yes) { name } ... @defer(if: $no) { slow } } }',
  'a deferred fragment of the query': '{ ...Q @defer } fragment Q on Query { item { id } }',
  'a deferred fragment of the query with an error':
    '{ ...Q @defer } fragment Q on Query { item { fails id } }',
  'a deferred fragment with slow fields': '{ item { id ...N @defer } } fragment N on Item { slow name }',
  'a deferred fragment in a deferred fragment':
    '{ item { id ...T @defer } } fragment T on Item { name ...F @defer } fragment F on Item { children { name } }',
  'a fragment that is deferred, and then not': '{ item { id ...T @defer ...T } } fragment T on Item { name }',
  'a fragment that is not deferred, and then is':
    '{ item { id ...T ...T @defer } } fragment T on Item { name }',
  'a deferred inline fragment': '{ item { id ... on Item @defer { name } } }',
  'an empty deferred fragment': '{ item { ... @defer { name @skip(if: true) } } }',
  'a deferred fragment in an empty one': '{ item { ... @defer { ... @defer { name } } } }',
  'labels with different fields':
    '{ item { ... @defer(label: "id") { id } ... @defer(label: "name") { name } } }',
  'labels with different subfields':
    '{ ... @defer(label: "id") { item { id } } ... @defer(label: "name") { item { name } } }',
  'labels with different slow subfields':
    '{ ... @defer(label: "slow") { itemLater { slow } } ... @defer(label: "name") { itemLater { name } } }',
  'different levels with different subfields':
    '{ item { ... @defer(label: "id") { id } } ... @defer(label: "name") { item { name } } }',
  'nested labels with different subfields':
    '{ ... @defer(label: "name") { item { name ... @defer(label: "id") { id } } } }',
  'a field that sibling fragments share':
    '{ item { ... @defer(label: "one") { inner { deepLater { a } } } ... @defer(label: "two") { inner { deepLater { a b } } } } }',
  'a field that nested fragments share':
    '{ item { ... @defer { inner { deep { a } } ... @defer { inner { deep { a b } } } } } }',
  'many deferred fragments of the same objects':
    '{ items { ... @defer { ...F ... @defer { ...F ... @defer { ...F } } } } } fragment F on Item { id name }',
  'fields of the initial payload':
    '{ item { inner { deep { a } } other { deep { a } } ... @defer { inner { deep { b } } other { deep { a } } } } }',
  'fields of the deferred parent': '{ item { ... @defer { inner { deep { a ... @defer { a b } } } } } }',
  'deferred fragments at several levels':
    '{ item { inner { deep { a } } ... @defer { inner { deep { a b } ... @defer { deep { a b c ... @defer { a b c d } } } } } } }',
  'fragments of different branches':
    '{ item { inner { deep { ... @defer { a } } } ... @defer { inner { deep { a b } } } } }',
  'fragments of different branches at several levels':
    '{ item { inner { deep { c } } ... @defer { inner { deep { d } } other { deep { a } } } } ... @defer { item { inner { deep { c } } name } } }',
  'a field of a fragment masked by its parent':
    '{ ... @defer { item { inner { deep { a } } ... @defer { inner { deep { a d } } } } } ... @defer { item { inner { deep { a d } } } } }',
  'null that crosses fragments, null first':
    '{ ... @defer { item { inner { deep { a } } must } } item { ... @defer { inner { deep { c d } } } } }',
  'null that crosses fragments, value first':
    '{ ... @defer { item { inner { deep { a } } name } } item { ... @defer { inner { deep { c } } must } } }',
  'fragments that both fail': '{ ... @defer { item { must } } ... @defer { item { mustLater } } }',
  'groups of one fragment that both fail':
    '{ ... @defer { item { inner { deep { a } } must } itemLater { mustLater } } item { id } itemLater { id } }',
  'a deferred part of an object that becomes null': '{ item { ... @defer { inner { deep { a } } } must } }',
  'a deferred part of an object that becomes null later':
    '{ item { ... @defer { inner { deep { a } } } mustLater } }',
  'a deferred part of a deferred object that becomes null':
    '{ item { id ... @defer { children { mustLater ... @defer { name } } } } }',
  'lists in both payloads': '{ item { children { name } ... @defer { children { name } } } }',
  'asynchronous lists in both payloads':
    '{ item { childrenLater { name } ... @defer { childrenLater { name } } } }',
  'empty lists in both payloads':
    '{ item { none { name } noneLater { name } ... @defer { none { name } noneLater { name } } } }',
  'lists with different fields': '{ item { children { name } ... @defer { children { id } } } }',
  'asynchronous lists with different fields':
    '{ item { childrenLater { name } ... @defer { childrenLater { id } } } }',
  'null objects in both payloads':
    '{ item { missing { name } missingLater { name } ... @defer { missing { name } missingLater { name } } } }',
  'errors of deferred fields': '{ item { id ... @defer { fails name failsLater } } }',
  'a deferred non-null field that is null': '{ item { id ... @defer { must } } }',
  'a deferred non-null field that is null later': '{ item { id ... @defer { mustLater } } }',
  'a non-null field outside of deferred fragments': '{ item { must ... @defer { id } } }',
  'slow and fast fragments':
    '{ item { id ... @defer(label: "slow") { slow children { slow } } ... @defer(label: "fast") { name } } }',
  'nested fragments of synchronous fields':
    '{ item { id ... @defer { name ... @defer { children { name } } } } }',
  'a deferred fragment of nulled list items': '{ itemsLater { mustIfOdd ... @defer { name } } }',
  'a streamed list': '{ words @stream(initialCount: 1) }',
  'the default initial count': '{ words @stream }',
  'an initial count beyond the list': '{ words @stream(initialCount: 9) }',
  'a negative initial count': '{ words @stream(initialCount: -2) }',
  'an empty streamed list': '{ empty @stream }',
  'a label of a streamed list': '{ words @stream(initialCount: 1, label: "rest") }',
  'a streamed list with if: false': '{ words @stream(if: false) }',
  'a streamed list of lists': '{ matrix @stream(initialCount: 1) }',
  'a streamed list of promises': '{ wordPromises @stream(initialCount: 1) }',
  'promises that resolve in another order': '{ wordsReversed @stream }',
  'promises of objects': '{ itemPromises @stream(initialCount: 1) { id slow } }',
  'a rejected item in the initial payload': '{ firstFailing @stream(initialCount: 1) }',
  'a rejected item after the initial payload': '{ wordsFailing @stream(initialCount: 1) }',
  'a streamed generator': '{ wordsLater @stream(initialCount: 1) }',
  'a streamed generator without initial items': '{ wordsLater @stream }',
  'a streamed generator with objects': '{ itemsLater @stream(initialCount: 2) { name slow } }',
  'a negative initial count of a generator': '{ wordsLater @stream(initialCount: -1) }',
  'a generator that fails in the initial payload': '{ failsImmediately @stream(initialCount: 1) }',
  'a generator that fails afterwards': '{ wordsFailingLater @stream(initialCount: 1) }',
  'a null item of a non-null list': '{ strictWords @stream(initialCount: 1) }',
  'a null item of a non-null generator': '{ strictWordsLater @stream(initialCount: 1) }',
  'items with errors': '{ items @stream(initialCount: 1) { fails id } }',
  'items with errors later': '{ items @stream(initialCount: 1) { failsLater id } }',
  'items that become null': '{ items @stream(initialCount: 1) { mustIfOdd } }',
  'items of a non-null list that become null': '{ strictItems @stream(initialCount: 1) { mustIfOdd } }',
  'items of a non-null list that become null later':
    '{ strictItems @stream(initialCount: 1) { id ... @defer { mustLater } } }',
  'a rejected item of a non-null list': '{ strictPromises @stream(initialCount: 1) { id } }',
  'items of a generator that become null': '{ itemsLater @stream(initialCount: 1) { mustIfOdd } }',
  'items of a non-null generator that become null':
    '{ strictItemsLater @stream(initialCount: 1) { mustIfOdd } }',
  'items of an iterator without return that become null':
    '{ itemsWithoutReturn @stream(initialCount: 1) { mustIfOdd } }',
  'an iterator without return': '{ wordsWithoutReturn @stream }',
  'items of a list without nulls': '{ allStrict @stream(initialCount: 1) { mustIfOdd } }',
  'items of a generator without nulls': '{ allStrictLater @stream(initialCount: 1) { mustIfOdd } }',
  'a streamed list of an object that becomes null': '{ item { must children @stream { id } } }',
  'a streamed list of an object that becomes null later':
    '{ item { mustLater childrenLater @stream { id } } }',
  'a streamed list next to an error': '{ item { fails children @stream(initialCount: 1) { id } } }',
  'a streamed list in a deferred fragment that becomes null':
    '{ item { id ... @defer { mustLater childrenLater @stream { id } } } }',
  'deferred fragments of streamed items':
    '{ items @stream(initialCount: 1) { id ... @defer { name slow } } }',
  'deferred fragments of streamed items that become null':
    '{ items @stream { mustIfOdd ... @defer { slow } } }',
  'deferred fragments of a streamed generator':
    '{ itemsLater @stream(initialCount: 1) { id ... @defer(label: "d") { slow } } }',
  'a streamed list that is also not streamed':
    '{ item { children { id } ... @defer { children { name } } } words @stream }',
  'a streamed list in a slow deferred fragment':
    '{ item { ... @defer { slow childrenLater @stream(initialCount: 1) { id } } } }',
  'a streamed list in streamed items': '{ items @stream { id children @stream(initialCount: 1) { id } } }',
};
