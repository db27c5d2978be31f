import { fails, type Group, later, rejects } from './case.ts';
import { common } from './common.ts';

export const fields: Group = {
  title: 'fields, promises and null',
  schema: common,
  cases: [
    {
      title: 'reads properties',
      query: '{ text int }',
      root: { text: 'a', int: 1 },
      data: { text: 'a', int: 1 },
    },
    {
      title: 'calls methods on their object',
      query: '{ text }',
      root: {
        word: 'mine',
        text() {
          return (this as { word: string }).word;
        },
      },
      data: { text: 'mine' },
    },
    { title: 'takes a missing property for null', query: '{ text }', root: {}, data: { text: null } },
    {
      title: 'has no properties in a primitive',
      query: '{ node { name } }',
      root: { node: 5 },
      data: { node: null },
      errors: ['Cannot return null for non-nullable field Node.name. node.name 1:10'],
    },
    {
      title: 'keeps the order of the document',
      query: '{ c: text a: int b: bool }',
      root: { text: 'x', int: 1, bool: true },
      data: { c: 'x', a: 1, b: true },
    },
    {
      title: 'merges fields of one key',
      query: '{ node { id } node { name } }',
      root: { node: { id: 1, name: 'n' } },
      data: { node: { id: '1', name: 'n' } },
    },
    {
      title: 'merges fields through fragments',
      query:
        '{ ...A ...B } fragment A on Query { node { id } } fragment B on Query { node { name next { id } } }',
      root: { node: { id: 1, name: 'n', next: { id: 2 } } },
      data: { node: { id: '1', name: 'n', next: { id: '2' } } },
    },
    {
      title: 'knows its own type',
      query: '{ __typename node { kind: __typename } }',
      root: { node: {} },
      data: { __typename: 'Query', node: { kind: 'Node' } },
    },
    {
      title: 'leaves out what is skipped',
      query:
        'query ($no: Boolean!) { text @skip(if: $no) int @include(if: $no) bool @skip(if: true) @include(if: true) }',
      variables: { no: true },
      root: { int: 2 },
      data: { int: 2 },
    },
    {
      title: 'selects anew for other variables',
      query: 'query ($no: Boolean = false) { text @skip(if: $no) int @include(if: $no) }',
      root: { text: 't' },
      data: { text: 't' },
    },
    {
      title: 'answers with an empty object when nothing is left',
      query: '{ text @skip(if: true) }',
      root: {},
      data: {},
    },
    {
      title: 'awaits promises',
      query: '{ text int }',
      root: { text: later('a'), int: () => later(1) },
      data: { text: 'a', int: 1 },
    },
    {
      title: 'awaits promises at every level',
      query: '{ nodes { name next { name } } }',
      root: { nodes: later([later({ name: later('a'), next: later({ name: 'b' }) }), null, { name: 'c' }]) },
      data: { nodes: [{ name: 'a', next: { name: 'b' } }, null, { name: 'c', next: null }] },
    },
    {
      title: 'keeps the order of the document when promises settle in another',
      query: '{ text int bool }',
      root: {
        text: () =>
          later(1)
            .then(() => 1)
            .then(() => 'late'),
        int: 1,
        bool: later(true),
      },
      data: { text: 'late', int: 1, bool: true },
    },
    {
      title: 'makes a nullable field null when its resolver throws',
      query: '{ text int }',
      root: { text: fails('oh'), int: 1 },
      data: { text: null, int: 1 },
      errors: ['oh text 1:3'],
    },
    {
      title: 'makes it null when its promise is rejected',
      query: '{ text int }',
      root: { text: rejects('oh'), int: 1 },
      data: { text: null, int: 1 },
      errors: ['oh text 1:3'],
    },
    {
      title: 'throws an error that was returned',
      query: '{ text }',
      root: { text: new Error('returned') },
      data: { text: null },
      errors: ['returned text 1:3'],
    },
    {
      title: 'wraps what is no error',
      query: '{ text }',
      root: {
        text: () => {
          throw 'bare';
        },
      },
      data: { text: null },
      errors: ['Unexpected error value: "bare" text 1:3'],
    },
    {
      title: 'lets null climb to the nearest nullable parent',
      query: '{ node { must { must { name } } } int }',
      root: { int: 1, node: { must: { must: { name: null } } } },
      data: { node: null, int: 1 },
      errors: ['Cannot return null for non-nullable field Node.name. node.must.must.name 1:24'],
    },
    {
      title: 'lets null climb to data',
      query: '{ int strict }',
      root: { int: 1 },
      data: null,
      errors: ['Cannot return null for non-nullable field Query.strict. strict 1:7'],
    },
    {
      title: 'lets null climb to data from a promise',
      query: '{ int mustNode { name } }',
      root: { int: 1, mustNode: later({ name: rejects('deep') }) },
      data: null,
      errors: ['deep mustNode.name 1:18'],
    },
    {
      title: 'keeps siblings of a null item',
      query: '{ nodes { name } }',
      root: { nodes: [{ name: 'a' }, { name: fails('b') }, { name: 'c' }] },
      data: { nodes: [{ name: 'a' }, null, { name: 'c' }] },
      errors: ['b nodes.1.name 1:11'],
    },
    {
      title: 'makes a list null for an item that may not be',
      query: '{ strictNumbers int }',
      root: { strictNumbers: [1, null], int: 3 },
      data: { strictNumbers: null, int: 3 },
      errors: ['Cannot return null for non-nullable field Query.strictNumbers. strictNumbers.1 1:3'],
    },
    {
      title: 'completes lists in lists',
      query: '{ matrix }',
      root: { matrix: [[1, 2], [], null, [3, null]] },
      data: { matrix: [[1, 2], [], null, null] },
      errors: ['Cannot return null for non-nullable field Query.matrix. matrix.3.1 1:3'],
    },
    {
      title: 'takes any iterable object for a list',
      query: '{ numbers }',
      root: { numbers: new Set([1, 2]) },
      data: { numbers: [1, 2] },
    },
    {
      title: 'takes generators for lists',
      query: '{ numbers }',
      root: {
        *numbers() {
          yield 1;
          yield later(2);
        },
      },
      data: { numbers: [1, 2] },
    },
    {
      title: 'takes no text for a list',
      query: '{ numbers }',
      root: { numbers: 'no' },
      data: { numbers: null },
      errors: ['Expected Iterable, but did not find one for field "Query.numbers". numbers 1:3'],
    },
    {
      title: 'fills the holes of an array with null',
      query: '{ numbers }',
      root: { numbers: Object.assign([], { 2: 1, length: 3 }) },
      data: { numbers: [null, null, 1] },
    },
    {
      title: 'mixes errors and values of promised items in order',
      query: '{ numbers }',
      root: { numbers: () => [later(1), rejects('x')(), 'no', later(4)] },
      data: { numbers: [1, null, null, 4] },
      errors: ['Int cannot represent non-integer value: "no" numbers.2 1:3', 'x numbers.1 1:3'],
    },
  ],
};
