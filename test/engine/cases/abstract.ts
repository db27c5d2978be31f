import { type Case, type Group, rejects, schemaOf, V17 } from './case.ts';

const SDL = /* GraphQL */ `
  interface Life { name: String }
  interface Being implements Life { name: String age: Int }
  interface Mammal implements Being & Life { name: String age: Int mother: Mammal }
  type Dog implements Mammal & Being & Life { name: String age: Int mother: Mammal barks: Boolean friends: [Being] }
  type Cat implements Mammal & Being & Life { name: String age: Int mother: Mammal meows: Boolean friends: [Being] }
  type Stone { weight: Int }
  union Thing = Dog | Cat | Stone
  type Query { being: Being beings: [Being] things: [Thing] must: [Being!]! life: Life }
`;

interface Being {
  readonly kind: string;
  readonly [name: string]: unknown;
}

const dog: Being = { kind: 'Dog', name: 'Odie', age: 2, barks: true };
const cat: Being = { kind: 'Cat', name: 'Garfield', age: 5, meows: false };
const stone: Being = { kind: 'Stone', weight: 7 };

const named = (being: Being): object => ({ ...being, __typename: being.kind });
const QUERY = '{ beings { __typename name ... on Dog { barks } ... on Cat { meows } } }';
const BOTH = [
  { __typename: 'Dog', name: 'Odie', barks: true },
  { __typename: 'Cat', name: 'Garfield', meows: false },
];

type Check = (value: Being) => unknown;
const TYPES = ['Dog', 'Cat', 'Stone'];

/** A schema whose object types have `isTypeOf`. */
const checked = (check: (name: string) => Check) =>
  schemaOf(SDL, {}, Object.fromEntries(TYPES.map((name) => [name, { isTypeOf: check(name) }])));
/** A schema whose interfaces and unions have `resolveType`. */
const resolved = (resolveType: Check) =>
  schemaOf(
    SDL,
    {},
    Object.fromEntries(['Life', 'Being', 'Mammal', 'Thing'].map((name) => [name, { resolveType }])),
  );

const SAME: readonly Case[] = [
  {
    title: 'determines the object types of an interface',
    query: QUERY,
    root: { beings: [dog, cat] },
    data: { beings: BOTH },
  },
  {
    title: 'determines the object types of a union',
    query: '{ things { ... on Stone { weight } ... on Being { name } ...M } } fragment M on Mammal { age }',
    root: { things: [stone, cat, Promise.resolve(dog)] },
    data: { things: [{ weight: 7 }, { name: 'Garfield', age: 5 }, { name: 'Odie', age: 2 }] },
  },
  {
    title: 'selects fields of interfaces that implement interfaces',
    query:
      '{ life { ... on Being { age ... on Mammal { mother { name } ... on Dog { friends { name } } } } } }',
    root: { life: { ...dog, mother: { ...dog, name: 'Mum' }, friends: [cat, null] } },
    data: { life: { age: 2, mother: { name: 'Mum' }, friends: [{ name: 'Garfield' }, null] } },
  },
];

const GROUPS = {
  'synchronous isTypeOf': checked(
    (name) =>
      ({ kind }) =>
        kind === name,
  ),
  'asynchronous isTypeOf': checked(
    (name) =>
      async ({ kind }) =>
        kind === name,
  ),
  'isTypeOf, synchronous and asynchronous': checked((name) =>
    name === 'Cat' ? ({ kind }) => kind === name : async ({ kind }) => kind === name,
  ),
  'synchronous resolveType': resolved(({ kind }) => kind),
  'asynchronous resolveType': resolved(async ({ kind }) => kind),
};

const byFunction: Group[] = Object.entries(GROUPS).map(([title, schema]) => ({ title, schema, cases: SAME }));

const failing = (
  title: string,
  schema: Group['schema'],
  errors: readonly string[],
  rows = [null, null],
): Group => ({
  title,
  schema,
  cases: [
    {
      title: 'sets a value to null if its type cannot be determined',
      query: QUERY,
      root: { beings: [dog, cat] },
      data: { beings: rows },
      errors,
    },
    {
      title: 'propagates the error of an undetermined type from a non-null position',
      query: '{ must { name } }',
      root: { must: [dog] },
      data: rows[0] === null ? null : { must: [{ name: 'Odie' }] },
      errors:
        rows[0] === null
          ? [
              (errors[0] as string)
                .replace('beings.0 1:3', 'must.0 1:3')
                .replace('Query.beings', 'Query.must'),
            ]
          : [],
    },
  ],
});

const HOW =
  'Either the "Being" type should provide a "resolveType" function or each possible type should provide an "isTypeOf" function.';
const MUST = 'Abstract type "Being" must resolve to an Object type at runtime for field "Query.beings"';
const received = (value: string, name: string): string =>
  `${MUST} with value ${value}, received "${name}"${V17 ? ', which is not a valid Object type name' : ''}.`;
const DOG = '{ kind: "Dog", name: "Odie", age: 2, barks: true }';
const CAT = '{ kind: "Cat", name: "Garfield", age: 5, meows: false }';
const twice = (text: (value: string) => string): string[] =>
  [DOG, CAT].map((value, index) => `${text(value)} beings.${index} 1:3`);

const throwing = (): never => {
  throw new Error('no idea');
};

const wrong: Group[] = [
  failing(
    'isTypeOf that throws',
    checked(() => throwing),
    twice(() => 'no idea'),
  ),
  failing(
    'isTypeOf that is rejected',
    checked(() => rejects('no idea')),
    twice(() => 'no idea'),
  ),
  failing(
    'isTypeOf that says no',
    checked(() => () => false),
    twice(() => `${MUST}. ${HOW}`),
  ),
  failing(
    'isTypeOf that says no later',
    checked(() => async () => false),
    twice(() => `${MUST}. ${HOW}`),
  ),
  failing(
    'resolveType that throws',
    resolved(throwing),
    twice(() => 'no idea'),
  ),
  failing(
    'resolveType that is rejected',
    resolved(rejects('no idea')),
    twice(() => 'no idea'),
  ),
  failing(
    'resolveType that gives nothing',
    resolved(() => undefined),
    twice(() => `${MUST}. ${HOW}`),
  ),
  failing(
    'resolveType that gives no name',
    resolved(() => []),
    twice((value) => received(value, '[]')),
  ),
  failing(
    'resolveType that names no type',
    resolved(async () => 'Human'),
    twice(
      () => 'Abstract type "Being" was resolved to a type "Human" that does not exist inside the schema.',
    ),
  ),
  failing(
    'resolveType that names an interface',
    resolved(() => 'Mammal'),
    twice(() => 'Abstract type "Being" was resolved to a non-object type "Mammal".'),
  ),
  failing(
    'resolveType returns a type that is not possible',
    resolved(() => 'Stone'),
    twice(() => 'Runtime Object type "Stone" is not a possible type for "Being".'),
  ),
  failing(
    'neither isTypeOf nor resolveType',
    schemaOf(SDL),
    twice(() => `${MUST}. ${HOW}`),
  ),
];

const others: Group = {
  title: 'other ways to determine types',
  schema: schemaOf(SDL),
  cases: [
    {
      title: 'reads __typename of the value',
      query: QUERY,
      root: { beings: [named(dog), Promise.resolve(named(cat))] },
      data: { beings: BOTH },
    },
    {
      title: 'calls the typeResolver option',
      query: QUERY,
      root: { beings: [dog, cat] },
      settings: { typeResolver: async ({ kind }: Being) => kind },
      data: { beings: BOTH },
    },
  ],
};

const confirming: Group = {
  title: 'isTypeOf after __typename',
  schema: checked(
    (name) =>
      async ({ kind }) =>
        kind === name,
  ),
  cases: [
    {
      title: 'checks the named type with isTypeOf',
      query: QUERY,
      root: { beings: [named(dog), { ...named(dog), __typename: 'Cat' }] },
      data: { beings: [BOTH[0], null] },
      errors: [
        'Expected value of type "Cat" but got: { kind: "Dog", name: "Odie", age: 2, barks: true, __typename: "Cat" }. beings.1 1:3',
      ],
    },
  ],
};

export const abstract: readonly Group[] = [...byFunction, ...wrong, others, confirming];
