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
    { title: 'writes null for a missing property', query: '{ text }', root: {}, data: { text: null } },
    {
      title: 'reads no properties of primitive values',
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
      title: 'merges fields with the same response key',
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
      title: 'writes __typename',
      query: '{ __typename node { kind: __typename } }',
      root: { node: {} },
      data: { __typename: 'Query', node: { kind: 'Node' } },
    },
    {
      title: 'writes an empty object if every field is omitted',
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
      title: 'keeps siblings of a null item',
      query: '{ nodes { name } }',
      root: { nodes: [{ name: 'a' }, { name: fails('b') }, { name: 'c' }] },
      data: { nodes: [{ name: 'a' }, null, { name: 'c' }] },
      errors: ['b nodes.1.name 1:11'],
    },
    {
      title: 'writes null for the holes of an array',
      query: '{ numbers }',
      root: { numbers: Object.assign([], { 2: 1, length: 3 }) },
      data: { numbers: [null, null, 1] },
    },
    {
      title: 'keeps the order of promised items that resolve and reject',
      query: '{ numbers }',
      root: { numbers: () => [later(1), rejects('x')(), 'no', later(4)] },
      data: { numbers: [1, null, null, 4] },
      errors: ['Int cannot represent non-integer value: "no" numbers.2 1:3', 'x numbers.1 1:3'],
    },
  ],
};
