import { type Case, type Group, schemaOf, V17 } from './case.ts';

const SDL = /* GraphQL */ `
  "A dog"
  type Dog implements Named { name: String! barks: Boolean @deprecated(reason: "too loud") }
  interface Named { name: String! }
  union Pet = Dog
  input Filter { name: String = "x", old: Int @deprecated }
  enum Mood { HAPPY SAD @deprecated(reason: "why") }
  type Query { pet(filter: Filter, id: ID!): Pet mood: Mood named: Named }
`;

const TYPE = 'kind name ofType { kind name }';

const cases: Case[] = [
  {
    title: 'introspects unions and interfaces with their members',
    query:
      '{ Named: __type(name: "Named") { ...T } Pet: __type(name: "Pet") { ...T } } fragment T on __Type { kind name fields { name } interfaces { name } possibleTypes { name } enumValues { name } inputFields { name } }',
    data: {
      Named: {
        kind: 'INTERFACE',
        name: 'Named',
        fields: [{ name: 'name' }],
        interfaces: [],
        possibleTypes: [{ name: 'Dog' }],
        enumValues: null,
        inputFields: null,
      },
      Pet: {
        kind: 'UNION',
        name: 'Pet',
        fields: null,
        interfaces: null,
        possibleTypes: [{ name: 'Dog' }],
        enumValues: null,
        inputFields: null,
      },
    },
  },
  {
    title: 'introspects a type named by a variable, without deprecated members by default',
    query: `query ($name: String!, $all: Boolean = false) { __type(name: $name) { description fields(includeDeprecated: $all) {
      name isDeprecated deprecationReason type { ${TYPE} } } } mood: __type(name: "Mood") { enumValues(includeDeprecated: true) { name deprecationReason } } }`,
    variables: { name: 'Dog' },
    data: {
      __type: {
        description: 'A dog',
        fields: [
          {
            name: 'name',
            isDeprecated: false,
            deprecationReason: null,
            type: { kind: 'NON_NULL', name: null, ofType: { kind: 'SCALAR', name: 'String' } },
          },
        ],
      },
      mood: {
        enumValues: [
          { name: 'HAPPY', deprecationReason: null },
          { name: 'SAD', deprecationReason: 'why' },
        ],
      },
    },
  },
  {
    title: 'introspects arguments with their defaults',
    query: `{ __schema { queryType { fields { name args { name defaultValue type { ${TYPE} } } } } mutationType { name } }
      __type(name: "Filter") { inputFields { name defaultValue } } }`,
    data: {
      __schema: {
        queryType: {
          fields: [
            {
              name: 'pet',
              args: [
                {
                  name: 'filter',
                  defaultValue: null,
                  type: { kind: 'INPUT_OBJECT', name: 'Filter', ofType: null },
                },
                {
                  name: 'id',
                  defaultValue: null,
                  type: { kind: 'NON_NULL', name: null, ofType: { kind: 'SCALAR', name: 'ID' } },
                },
              ],
            },
            { name: 'mood', args: [] },
            { name: 'named', args: [] },
          ],
        },
        mutationType: null,
      },
      __type: { inputFields: [{ name: 'name', defaultValue: '"x"' }] },
    },
  },
  {
    title: 'returns null for the __type of an unknown name',
    query: '{ __type(name: "Unknown") { name } }',
    data: { __type: null },
  },
  {
    title: 'omits __schema on types other than the query type',
    query: '{ named { __typename __schema { types { name } } } }',
    root: { named: { __typename: 'Dog' } },
    data: { named: { __typename: 'Dog' } },
  },
];

export const introspection: Group = { title: 'introspection', schema: schemaOf(SDL), cases };

const NEWER = /* GraphQL */ `
  directive @experimental_disableErrorPropagation on QUERY | MUTATION | SUBSCRIPTION
  type Query { must: Int! other: Int }
`;
const must = (): never => {
  throw new Error('must');
};

/** graphql 17 executes operations with this directive; 16 ignores it. */
export const propagation: Group = {
  title: '@experimental_disableErrorPropagation',
  schema: schemaOf(NEWER),
  cases: [
    {
      title: 'propagates errors by default',
      query: '{ other must } ',
      root: { other: 1, must },
      data: null,
      errors: ['must must 1:9'],
    },
    {
      title: 'does not propagate errors with the directive on graphql 17',
      query: 'query @experimental_disableErrorPropagation { other must }',
      root: { other: 1, must },
      data: V17 ? { other: 1, must: null } : null,
      errors: ['must must 1:53'],
    },
  ],
};
