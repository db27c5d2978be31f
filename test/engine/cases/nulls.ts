import { type Case, type Group, rejects, schemaOf } from './case.ts';

const SDL = /* GraphQL */ `
  type Nest {
    sync: String syncMust: String! late: String lateMust: String!
    nest: Nest nestMust: Nest! lateNest: Nest lateNestMust: Nest!
  }
  type Query {
    sync: String syncMust: String! late: String lateMust: String!
    nest: Nest nestMust: Nest! lateNest: Nest lateNestMust: Nest!
  }
`;

/** An endless tree whose leaves are null. */
const nulls: Record<string, () => unknown> = {
  sync: () => null,
  syncMust: () => null,
  late: async () => null,
  lateMust: async () => null,
  nest: () => nulls,
  nestMust: () => nulls,
  lateNest: async () => nulls,
  lateNestMust: async () => nulls,
};

/** The same with leaves that all fail. */
const failures: Record<string, () => unknown> = {
  ...nulls,
  sync: () => {
    throw new Error('now');
  },
  syncMust: () => {
    throw new Error('now, must');
  },
  late: rejects('late'),
  lateMust: rejects('late, must'),
  nest: () => failures,
  nestMust: () => failures,
  lateNest: async () => failures,
  lateNestMust: async () => failures,
};

const NULL = (type: string, field: string) => `Cannot return null for non-nullable field ${type}.${field}.`;

/** A query, its response if leaves are null, and its response if leaves fail. */
type Row = readonly [
  query: string,
  withNulls: Pick<Case, 'data' | 'errors'>,
  withFailures: Pick<Case, 'data' | 'errors'>,
];

const ROWS: readonly Row[] = [
  ['{ sync }', { data: { sync: null } }, { data: { sync: null }, errors: ['now sync 1:3'] }],
  ['{ late }', { data: { late: null } }, { data: { late: null }, errors: ['late late 1:3'] }],
  [
    '{ nest { syncMust } }',
    { data: { nest: null }, errors: [`${NULL('Nest', 'syncMust')} nest.syncMust 1:10`] },
    { data: { nest: null }, errors: ['now, must nest.syncMust 1:10'] },
  ],
  [
    '{ nest { lateMust } }',
    { data: { nest: null }, errors: [`${NULL('Nest', 'lateMust')} nest.lateMust 1:10`] },
    { data: { nest: null }, errors: ['late, must nest.lateMust 1:10'] },
  ],
  [
    '{ lateNest { syncMust } }',
    { data: { lateNest: null }, errors: [`${NULL('Nest', 'syncMust')} lateNest.syncMust 1:14`] },
    { data: { lateNest: null }, errors: ['now, must lateNest.syncMust 1:14'] },
  ],
  [
    '{ lateNest { lateMust } }',
    { data: { lateNest: null }, errors: [`${NULL('Nest', 'lateMust')} lateNest.lateMust 1:14`] },
    { data: { lateNest: null }, errors: ['late, must lateNest.lateMust 1:14'] },
  ],
  [
    '{ nest { sync late nest { sync } lateNest { late } } }',
    { data: { nest: { sync: null, late: null, nest: { sync: null }, lateNest: { late: null } } } },
    {
      data: { nest: { sync: null, late: null, nest: { sync: null }, lateNest: { late: null } } },
      errors: [
        'now nest.sync 1:10',
        'now nest.nest.sync 1:27',
        'late nest.late 1:15',
        'late nest.lateNest.late 1:45',
      ],
    },
  ],
  [
    '{ nest { nestMust { lateNestMust { nestMust { syncMust } } } } sync }',
    {
      data: { nest: null, sync: null },
      errors: [`${NULL('Nest', 'syncMust')} nest.nestMust.lateNestMust.nestMust.syncMust 1:47`],
    },
    {
      data: { nest: null, sync: null },
      errors: ['now sync 1:64', 'now, must nest.nestMust.lateNestMust.nestMust.syncMust 1:47'],
    },
  ],
  [
    '{ lateNest { lateNestMust { nestMust { lateMust } } } other: nest { nestMust { nestMust { syncMust } } } }',
    {
      data: { lateNest: null, other: null },
      errors: [
        `${NULL('Nest', 'syncMust')} other.nestMust.nestMust.syncMust 1:91`,
        `${NULL('Nest', 'lateMust')} lateNest.lateNestMust.nestMust.lateMust 1:40`,
      ],
    },
    {
      data: { lateNest: null, other: null },
      errors: [
        'now, must other.nestMust.nestMust.syncMust 1:91',
        'late, must lateNest.lateNestMust.nestMust.lateMust 1:40',
      ],
    },
  ],
  [
    '{ syncMust }',
    { data: null, errors: [`${NULL('Query', 'syncMust')} syncMust 1:3`] },
    { data: null, errors: ['now, must syncMust 1:3'] },
  ],
  [
    '{ lateMust }',
    { data: null, errors: [`${NULL('Query', 'lateMust')} lateMust 1:3`] },
    { data: null, errors: ['late, must lateMust 1:3'] },
  ],
  [
    '{ sync nestMust { lateNestMust { lateMust } } }',
    { data: null, errors: [`${NULL('Nest', 'lateMust')} nestMust.lateNestMust.lateMust 1:34`] },
    { data: null, errors: ['now sync 1:3', 'late, must nestMust.lateNestMust.lateMust 1:34'] },
  ],
  // Of two errors that propagate to the same parent, the first one is reported.
  [
    '{ nest { lateMust syncMust } }',
    { data: { nest: null }, errors: [`${NULL('Nest', 'syncMust')} nest.syncMust 1:19`] },
    { data: { nest: null }, errors: ['now, must nest.syncMust 1:19'] },
  ],
  [
    '{ nest { a: lateMust b: lateMust } late }',
    { data: { nest: null, late: null }, errors: [`${NULL('Nest', 'lateMust')} nest.a 1:10`] },
    { data: { nest: null, late: null }, errors: ['late late 1:36', 'late, must nest.a 1:10'] },
  ],
];

export const propagatedNulls: Group = {
  title: 'error propagation',
  schema: schemaOf(SDL),
  cases: ROWS.flatMap(([query, withNulls, withFailures]) => [
    { title: `propagates nulls in ${query}`, query, root: nulls, ...withNulls },
    { title: `propagates errors in ${query}`, query, root: failures, ...withFailures },
  ]),
};
