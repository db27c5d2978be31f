import { type Case, type Group, later, schemaOf } from './case.ts';

const SDL = /* GraphQL */ `
  type Query { a: String b: String c: String }
  type Mutation { now(to: Int): Int later(to: Int): Int fail: Int failLater: Int failMust: Int! number: Number }
  type Number { value: Int }
  type Event { a: String }
  type Subscription { tick: Event word: String }
`;

class Root {
  value = 0;
  now = ({ to }: { to: number }): number => {
    this.value = to;
    return to;
  };
  later = async ({ to }: { to: number }): Promise<number> => {
    await new Promise(setImmediate);
    this.value = to;
    return to;
  };
  fail = (): never => {
    throw new Error(`failed at ${this.value}`);
  };
  failLater = async (): Promise<never> => {
    await new Promise(setImmediate);
    throw new Error(`failed late at ${this.value}`);
  };
  failMust = (): never => this.fail();
  number = (): { value: number } => ({ value: this.value });
}

const mutations: Case[] = [
  {
    title: 'executes the fields of a mutation one after the other',
    query:
      'mutation { a: now(to: 1) b: later(to: 2) number { value } c: now(to: 3) d: later(to: 4) last: number { value } }',
    root: () => new Root(),
    data: { a: 1, b: 2, number: { value: 2 }, c: 3, d: 4, last: { value: 4 } },
  },
  {
    title: 'continues after a mutation field that failed',
    query: 'mutation { a: now(to: 1) fail b: later(to: 2) failLater c: now(to: 3) }',
    root: () => new Root(),
    data: { a: 1, fail: null, b: 2, failLater: null, c: 3 },
    errors: ['failed at 1 fail 1:26', 'failed late at 2 failLater 1:47'],
  },
  {
    title: 'stops after a non-null mutation field that failed',
    query: 'mutation { a: later(to: 1) failMust b: later(to: 2) }',
    root: () => new Root(),
    data: null,
    errors: ['failed at 1 failMust 1:28'],
  },
  {
    title: 'executes mutation fields in fragments in their order',
    query:
      'mutation { ...M last: number { value } } fragment M on Mutation { later(to: 7) ... { number { value } } }',
    root: () => new Root(),
    data: { later: 7, number: { value: 7 }, last: { value: 7 } },
  },
];

const operations: Case[] = [
  {
    title: 'selects the operation by name',
    query: 'query A { a } query B { b } mutation C { now(to: 5) } fragment F on Query { c }',
    operationName: 'C',
    root: () => new Root(),
    data: { now: 5 },
  },
  {
    title: 'executes events of subscriptions',
    query: 'subscription S { tick { a } word }',
    root: { tick: later({ a: 'event' }), word: 'w' },
    data: {
      tick: { a: 'event' },
      word: 'w',
    },
  },
];

export const operationTypes: Group = {
  title: 'mutations, subscriptions and documents of several operations',
  schema: schemaOf(SDL),
  cases: [...mutations, ...operations],
};
