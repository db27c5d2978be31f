import {
  GraphQLEnumType,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
  valueFromASTUntyped,
} from 'graphql';
import { type Case, echo, type Group, on, schemaOf } from './case.ts';
import { REFUSED } from './refused.ts';

const SDL = /* GraphQL */ `
  scalar Odd
  scalar Faulty
  input Nested { na: Test! nb: String! }
  input Test { a: String b: [String] c: String! d: Odd e: Faulty }
  input One @oneOf { a: String b: Int }
  type Query {
    object(input: Test): String nested(input: Nested): String odd(input: Odd): String
    text(input: String): String must(input: String!): String mustDefault(input: String! = "Hello"): String
    default(input: String = "Hello"): String one(input: One!): String
    list(input: [String]): String mustList(input: [String]!): String
    listOfMust(input: [String!]): String allMust(input: [String!]!): String lists(input: [[Int]]): String
    nullDefault(input: String = null): String
  }
`;

const withVariable = (name: string, type: string, value = ''): string =>
  `query ($v: ${type}${value}) { ${name}(input: $v) }`;

/** The field that a query selects. */
const FIELD = /\{ (\w+)(?:\(input| \}$)/;

const given = (title: string, query: string, variables: Record<string, unknown>, args: string): Case => ({
  title: `accepts ${title}`,
  query,
  variables,
  data: { [FIELD.exec(query)?.[1] ?? '']: args },
});

const OBJECT = withVariable('object', 'Test');
const FULL = '{"input":{"a":"foo","b":["bar"],"c":"baz"}}';

const accepted: readonly Case[] = [
  given('an object', OBJECT, { v: { a: 'foo', b: ['bar'], c: 'baz' } }, FULL),
  given('an object with one item for a list', OBJECT, { v: { a: 'foo', b: 'bar', c: 'baz' } }, FULL),
  given('an object literal', '{ object(input: { a: "foo", b: ["bar"], c: "baz" }) }', {}, FULL),
  given(
    'an object literal with one item for a list',
    '{ object(input: { a: "foo", b: "bar", c: "baz" }) }',
    {},
    FULL,
  ),
  given(
    'null inside of literals',
    '{ object(input: { a: null, b: null, c: "C", d: null }) }',
    {},
    '{"input":{"a":null,"b":null,"c":"C","d":null}}',
  ),
  given(
    'null in a list of a literal',
    '{ object(input: { b: ["A", null, "C"], c: "C" }) }',
    {},
    '{"input":{"b":["A",null,"C"],"c":"C"}}',
  ),
  given(
    'a scalar parsed from a literal',
    '{ object(input: { c: "c", d: "odd" }) }',
    {},
    '{"input":{"c":"c","d":"parsed odd"}}',
  ),
  given(
    'a scalar parsed from a variable',
    OBJECT,
    { v: { c: 'c', d: 'odd' } },
    '{"input":{"c":"c","d":"parsed odd"}}',
  ),
  given(
    'a scalar parsed from a literal with variables in it',
    'query ($v: String) { odd(input: { deep: [$v, 1] }) }',
    { v: 'inner' },
    '{"input":"parsed {\\"deep\\":[\\"inner\\",1]}"}',
  ),
  given(
    'a variable inside of a literal',
    'query ($v: String) { object(input: { a: $v, c: "c" }) }',
    { v: 'a' },
    '{"input":{"a":"a","c":"c"}}',
  ),
  given(
    'a literal with a member whose variable is missing',
    'query ($v: String) { object(input: { a: $v, c: "c" }) }',
    {},
    '{"input":{"c":"c"}}',
  ),
  given('a missing variable', withVariable('text', 'String'), {}, '{}'),
  given('null', withVariable('text', 'String'), { v: null }, '{"input":null}'),
  given(
    'undefined for a missing variable',
    withVariable('text', 'String'),
    { v: undefined },
    on('{"input":null}', '{}'),
  ),
  given(
    'more variables than were declared',
    withVariable('text', 'String'),
    { v: 'a', other: 1 },
    '{"input":"a"}',
  ),
  given(
    'the default of a variable',
    withVariable('object', 'Test', ' = { a: "foo", b: ["bar"], c: "baz" }'),
    {},
    FULL,
  ),
  given(
    'a value in place of the default of a variable',
    withVariable('text', 'String', ' = "default"'),
    { v: 'mine' },
    '{"input":"mine"}',
  ),
  given(
    'null in place of the default of a variable',
    withVariable('text', 'String', ' = "default"'),
    { v: null },
    '{"input":null}',
  ),
  given('null as the default of a variable', withVariable('text', 'String', ' = null'), {}, '{"input":null}'),
  given('the default of an argument', '{ default }', {}, '{"input":"Hello"}'),
  given(
    'the default of an argument whose variable is missing',
    withVariable('default', 'String'),
    {},
    '{"input":"Hello"}',
  ),
  given('null in place of the default of an argument', '{ default(input: null) }', {}, '{"input":null}'),
  given('null as the default of an argument', '{ nullDefault }', {}, '{"input":null}'),
  given('the default of a non-null argument', withVariable('mustDefault', 'String'), {}, '{"input":"Hello"}'),
  given(
    'a nullable variable with a default for a non-null argument',
    withVariable('must', 'String', ' = "x"'),
    {},
    '{"input":"x"}',
  ),
  given('a list', withVariable('list', '[String]'), { v: ['A', null, 'B'] }, '{"input":["A",null,"B"]}'),
  given('null for a list', withVariable('list', '[String]'), { v: null }, '{"input":null}'),
  given('one item for a list', withVariable('mustList', '[String]!'), { v: 'A' }, '{"input":["A"]}'),
  given(
    'null in a non-null list of nullable items',
    withVariable('mustList', '[String]!'),
    { v: ['A', null] },
    '{"input":["A",null]}',
  ),
  given('a list of non-null items', withVariable('listOfMust', '[String!]'), { v: ['A'] }, '{"input":["A"]}'),
  given('one item for a list of lists', withVariable('lists', '[[Int]]'), { v: 5 }, '{"input":[[5]]}'),
  given(
    'items for lists in a list',
    withVariable('lists', '[[Int]]'),
    { v: [1, null, [2]] },
    '{"input":[[1],null,[2]]}',
  ),
  given(
    'one member of a @oneOf object',
    withVariable('one', 'One!'),
    { v: { a: 'abc' } },
    '{"input":{"a":"abc"}}',
  ),
  given('the other member of a @oneOf literal', '{ one(input: { b: 1 }) }', {}, '{"input":{"b":1}}'),
  given(
    'a variable as the member of a @oneOf literal',
    'query ($b: Int!) { one(input: { b: $b }) }',
    { b: 7 },
    '{"input":{"b":7}}',
  ),
  given(
    'a @oneOf object as a default',
    withVariable('one', 'One', ' = { a: "def" }'),
    {},
    '{"input":{"a":"def"}}',
  ),
  given(
    'one member of a @oneOf object with another that is undefined',
    withVariable('one', 'One!'),
    { v: { a: 'abc', b: undefined } },
    '{"input":{"a":"abc"}}',
  ),
];

/** A field with invalid arguments is null. A request with invalid variables is not executed. */
const refused: Case[] = REFUSED.map(([title, query, variables, of16, of17]) => {
  const errors = on(of16, of17);
  const field = FIELD.exec(query)?.[1] ?? '';
  const inField = errors.some((line) => new RegExp(` ${field} [\\d:]+$`).test(line));
  return {
    title: `refuses ${title}`,
    query,
    variables,
    errors,
    ...(inField ? { data: { [field]: null } } : {}),
  };
});

const limited: Case[] = [
  {
    title: 'stops after maxErrors errors of variables',
    query: withVariable('listOfMust', '[String!]'),
    variables: { v: [null, null, null, null] },
    settings: { maxErrors: 2 },
    errors: on(
      [
        'Variable "$v" got invalid value null at "v[0]"; Expected non-nullable type "String!" not to be null.  1:8',
        'Variable "$v" got invalid value null at "v[1]"; Expected non-nullable type "String!" not to be null.  1:8',
      ],
      [
        'Variable "$v" has invalid value at [0]: Expected value of non-null type "String!" not to be null.  1:8',
        'Variable "$v" has invalid value at [1]: Expected value of non-null type "String!" not to be null.  1:8',
      ],
    ),
  },
];

const refuse = (): never => {
  throw new Error('FaultyScalarErrorMessage');
};

export const inputs: Group = {
  title: 'arguments and variables',
  schema: schemaOf(
    SDL,
    Object.fromEntries([...SDL.matchAll(/(\w+)\(input/g)].map(([, name]) => [`Query.${name}`, echo])),
    {
      Odd: {
        parseValue: (value: unknown) => `parsed ${value}`,
        parseLiteral: (...node: Parameters<typeof valueFromASTUntyped>) => {
          const value = valueFromASTUntyped(...node);
          return `parsed ${typeof value === 'string' ? value : JSON.stringify(value)}`;
        },
      },
      Faulty: { parseValue: refuse, parseLiteral: refuse },
    },
  ),
  cases: [...accepted, ...refused, ...limited],
};

const odd = new GraphQLEnumType({
  name: 'Odd',
  values: {
    NULL: { value: null },
    UNDEFINED: { value: undefined },
    NAN: { value: Number.NaN },
    FALSE: { value: false },
    CUSTOM: { value: 'custom value' },
    DEFAULT: {},
    OBJECT: { value: { some: 'object' } },
  },
});

const shown = (_source: unknown, { input }: { input?: unknown }): string =>
  Number.isNaN(input) ? 'NaN' : `${typeof input} ${JSON.stringify(input)}`;

export const enums: Group = {
  title: 'enum values of any JavaScript type',
  schema: new GraphQLSchema({
    query: new GraphQLObjectType({
      name: 'Query',
      fields: {
        read: { type: GraphQLString, args: { input: { type: odd } }, resolve: shown },
        readMust: { type: GraphQLString, args: { input: { type: new GraphQLNonNull(odd) } }, resolve: shown },
        write: {
          type: new GraphQLList(odd),
          resolve: () => ['custom value', false, Number.NaN, 'DEFAULT', null, Promise.resolve(false)],
        },
      },
    }),
  }),
  cases: [
    {
      title: 'passes the internal values of enums to resolvers',
      query:
        '{ a: read(input: NULL) b: read(input: NAN) c: read(input: FALSE) d: read(input: CUSTOM) e: read(input: DEFAULT) f: read(input: OBJECT) }',
      data: {
        a: 'object null',
        b: 'NaN',
        c: 'boolean false',
        d: 'string "custom value"',
        e: 'string "DEFAULT"',
        f: 'object {"some":"object"}',
      },
    },
    {
      title: 'accepts an enum value whose internal value is null for a non-null argument',
      query: 'query ($v: Odd!) { readMust(input: NULL) b: readMust(input: $v) }',
      variables: { v: 'FALSE' },
      data: { readMust: 'object null', b: 'boolean false' },
    },
    {
      title: 'writes the names of internal enum values',
      query: '{ write }',
      data: { write: ['CUSTOM', 'FALSE', 'NAN', 'DEFAULT', null, 'FALSE'] },
    },
  ],
};
