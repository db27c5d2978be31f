import { type Case, type Group, on, schemaOf } from './case.ts';

const FRAGMENTS = {
  'a field': (directive: string) => `{ a b ${directive} }`,
  'a fragment spread': (directive: string) => `{ a ...Frag ${directive} } fragment Frag on Query { b }`,
  'an inline fragment': (directive: string) => `{ a ... on Query ${directive} { b } }`,
  'an inline fragment without a type': (directive: string) => `{ a ... ${directive} { b } }`,
};

/** The directives, and whether they include `b`. */
const DIRECTIVES: readonly (readonly [text: string, included: boolean])[] = [
  ['', true],
  ['@include(if: true)', true],
  ['@include(if: false)', false],
  ['@skip(if: false)', true],
  ['@skip(if: true)', false],
  ['@include(if: true) @skip(if: false)', true],
  ['@include(if: true) @skip(if: true)', false],
  ['@include(if: false) @skip(if: false)', false],
];

const byLiteral: Case[] = Object.entries(FRAGMENTS).flatMap(([where, query]) =>
  DIRECTIVES.map(([directive, included]) => ({
    title: `${included ? 'keeps' : 'omits'} ${where} with "${directive}"`,
    query: query(directive),
    data: included ? { a: 'a', b: 'b' } : { a: 'a' },
  })),
);

const byVariable: Case[] = Object.entries(FRAGMENTS).flatMap(([where, query]) =>
  [true, false].map((yes) => ({
    title: `reads ${yes} from a variable for ${where}`,
    query: `query ($yes: Boolean!, $no: Boolean = true) ${query('@include(if: $yes) @skip(if: $no)')}`,
    variables: { yes, no: !yes },
    data: yes ? { a: 'a', b: 'b' } : { a: 'a' },
  })),
);

const defaults: Case[] = [
  {
    title: 'uses the default of a missing variable',
    query: 'query ($yes: Boolean = true, $no: Boolean! = false) { a @include(if: $no) b @include(if: $yes) }',
    data: { b: 'b' },
  },
  {
    title: 'refuses null in place of a default',
    query: 'query ($yes: Boolean = true) { a b @include(if: $yes) }',
    variables: { yes: null },
    data: null,
    errors: on(
      ['Argument "if" of non-null type "Boolean!" must not be null.  1:49'],
      [
        'Argument "@include(if:)" has invalid value: Expected variable "$yes" provided to non-null type "Boolean!" not to be null.  1:49',
      ],
    ),
  },
  {
    title: 'refuses a missing required variable',
    query: 'query ($yes: Boolean!) { a @include(if: $yes) }',
    errors: on(
      ['Variable "$yes" of required type "Boolean!" was not provided.  1:8'],
      [
        'Variable "$yes" has invalid value: Expected a value of non-null type "Boolean!" to be provided.  1:8',
      ],
    ),
  },
  {
    title: 'keeps a field that one of two fragments includes',
    query:
      '{ ...A @skip(if: true) ...B } fragment A on Query { a } fragment B on Query { a @include(if: true) a @skip(if: true) }',
    data: { a: 'a' },
  },
  {
    title: 'orders fields by their first included selection',
    query: '{ b @skip(if: true) a ... @include(if: true) { b } }',
    data: { a: 'a', b: 'b' },
  },
  {
    title: 'merges selections of which some are omitted',
    query:
      'query ($no: Boolean!) { deep { a } deep @include(if: $no) { b } deep { ... @skip(if: $no) { b } } }',
    variables: { no: false },
    data: { deep: { a: 'deep a', b: 'deep b' } },
  },
  {
    title: 'omits fields of mutations',
    query: 'mutation ($no: Boolean!) { set(to: 1) @include(if: $no) second: set(to: 2) }',
    variables: { no: false },
    data: { second: 2 },
  },
];

const SDL = 'type Query { a: String b: String deep: Query } type Mutation { set(to: Int): Int }';

export const directives: Group = {
  title: '@skip and @include',
  schema: schemaOf(SDL, { 'Mutation.set': (_root, { to }: { to: number }) => to }),
  cases: [...byLiteral, ...byVariable, ...defaults].map((wanted) => ({
    ...wanted,
    root: { a: 'a', b: 'b', deep: { a: 'deep a', b: 'deep b' } },
  })),
};
