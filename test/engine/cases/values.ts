import { GraphQLError } from 'graphql';
import type { Group } from './case.ts';
import { common } from './common.ts';

const cat = { kind: 'Cat', name: 'Tom', meows: true };

export const values: Group = {
  title: 'values, types and arguments',
  schema: common,
  cases: [
    {
      title: 'serializes built-in scalars',
      query: '{ text int float bool id }',
      root: { text: 12, int: '7', float: '1.5', bool: 0, id: 9 },
      data: { text: '12', int: 7, float: 1.5, bool: false, id: '9' },
    },
    {
      title: 'refuses integers out of range',
      query: '{ int }',
      root: { int: 2 ** 31 },
      data: { int: null },
      errors: ['Int cannot represent non 32-bit signed integer value: 2147483648 int 1:3'],
    },
    {
      title: 'writes the largest and the smallest integer',
      query: '{ numbers }',
      root: { numbers: [2147483647, -2147483648, 0, -0, 10, 99, 100] },
      data: { numbers: [2147483647, -2147483648, 0, 0, 10, 99, 100] },
    },
    {
      title: 'refuses numbers that are not finite',
      query: '{ float a: float }',
      root: { float: Number.NaN },
      data: { float: null, a: null },
      errors: [
        'Float cannot represent non numeric value: NaN float 1:3',
        'Float cannot represent non numeric value: NaN a 1:9',
      ],
    },
    { title: 'writes enum names', query: '{ colour }', root: { colour: 'RED' }, data: { colour: 'RED' } },
    {
      title: 'refuses an unknown enum value',
      query: '{ colour }',
      root: { colour: 'BLUE' },
      data: { colour: null },
      errors: ['Enum "Colour" cannot represent value: "BLUE" colour 1:3'],
    },
    {
      title: 'writes objects of custom scalars',
      query: '{ any }',
      root: { any: { a: [1, { b: 'ü"' }], gone: undefined } },
      data: { any: { a: [1, { b: 'ü"' }] } },
    },
    {
      title: 'calls toJSON of custom scalars',
      query: '{ any }',
      root: { any: { toJSON: () => 'as text' } },
      data: { any: 'as text' },
    },
    {
      title: 'writes dates',
      query: '{ any }',
      root: { any: new Date(0) },
      data: { any: '1970-01-01T00:00:00.000Z' },
    },
    {
      title: 'writes infinite numbers of custom scalars as null',
      query: '{ any }',
      root: { any: Number.POSITIVE_INFINITY },
      data: { any: null },
    },
    {
      title: 'escapes strings',
      query: '{ text other }',
      root: { text: 'a"\\\n\u0000\u2028é\u{1f600}', other: `${'z'.repeat(300)}"` },
      data: { text: 'a"\\\n\u0000\u2028é\u{1f600}', other: `${'z'.repeat(300)}"` },
    },
    {
      title: 'reads __typename before it calls other type checks',
      query: '{ being { name } }',
      root: { being: { __typename: 'Cat', ...cat } },
      data: { being: { name: 'Tom' } },
    },
    {
      title: 'refuses the name of an unknown type',
      query: '{ being { name } }',
      root: { being: { __typename: 'Bird' } },
      data: { being: null },
      errors: [
        'Abstract type "Being" was resolved to a type "Bird" that does not exist inside the schema. being 1:3',
      ],
    },
    {
      title: 'refuses a type that is not possible',
      query: '{ being { name } }',
      root: { being: { __typename: 'Node' } },
      data: { being: null },
      errors: ['Runtime Object type "Node" is not a possible type for "Being". being 1:3'],
    },
    {
      title: 'refuses the name of a type that is not an object type',
      query: '{ being { name } }',
      root: { being: { __typename: 'Being' } },
      data: { being: null },
      errors: ['Abstract type "Being" was resolved to a non-object type "Being". being 1:3'],
    },
    {
      title: 'reports a value without a matching type',
      query: '{ being { name } }',
      root: { being: {} },
      data: { being: null },
      errors: [
        'Abstract type "Being" must resolve to an Object type at runtime for field "Query.being". Either the "Being" type should provide a "resolveType" function or each possible type should provide an "isTypeOf" function. being 1:3',
      ],
    },
    {
      title: 'checks isTypeOf of the type named by __typename',
      query: '{ being { name } }',
      root: { being: { __typename: 'Cat', kind: 'Dog' } },
      data: { being: null },
      errors: ['Expected value of type "Cat" but got: { __typename: "Cat", kind: "Dog" }. being 1:3'],
    },
    {
      title: 'passes arguments and their defaults',
      query: '{ echo(a: 1) }',
      root: {},
      data: { echo: '{"a":1,"b":"default"}' },
    },
    {
      title: 'adds the defaults of input objects',
      query: 'query ($r: Range) { echo(range: $r) }',
      variables: { r: { to: 3 } },
      root: {},
      data: { echo: '{"b":"default","range":{"from":1,"to":3,"label":"none","colours":["RED"]}}' },
    },
    {
      title: 'adds defaults for missing variables in input objects',
      query: 'query ($from: Int = 5, $label: String) { echo(range: { from: $from, label: $label }) }',
      root: {},
      data: { echo: '{"b":"default","range":{"from":5,"label":"none","colours":["RED"]}}' },
    },
    {
      title: 'passes the member of a @oneOf literal',
      query: '{ echo(one: { id: 1 }) }',
      root: {},
      data: { echo: '{"b":"default","one":{"id":"1"}}' },
    },
    {
      title: 'keeps the extensions of errors',
      query: '{ text }',
      root: {
        text: () => {
          throw new GraphQLError('coded', { extensions: { code: 'X' } });
        },
      },
      data: { text: null },
      errors: ['coded text 1:3'],
    },
    {
      title: 'keeps the path of an error that has one',
      query: '{ text }',
      root: {
        text: () => {
          throw new GraphQLError('elsewhere', { path: ['a', 1] });
        },
      },
      data: { text: null },
      errors: ['elsewhere a.1 '],
    },
  ],
};
