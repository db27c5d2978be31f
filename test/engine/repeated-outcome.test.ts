import { buildSchema } from 'graphql';
import type { ExecutionOutcome } from '../../src/execution/types.ts';
import { hash } from './choices.ts';
import { engines, prepare, settingsOf } from './compare.ts';

const schema = buildSchema(`
  type Event { id: Int! text: String! forUser: String late: String }
  type Query { event: Event }
  type Subscription { event: Event }
`);
const settings = settingsOf();
const QUERY = 'subscription { event { id text forUser } }';
const run = prepare(engines.compiled, schema, QUERY, settings);

const eventOf = (id: number, text = 'ü', forUser?: unknown) => ({
  rootValue: { event: { id, text, forUser } },
  variableValues: {},
});

const outcomeOf = (inputs: ReturnType<typeof eventOf>): ExecutionOutcome => run(inputs) as ExecutionOutcome;

describe('results of subscriptions', () => {
  it('equal results of one subscription share their bytes', () => {
    for (const text of ['', 'a', 'ab', 'abc', 'x'.repeat(3000)]) {
      const { body } = outcomeOf(eventOf(1, text));
      for (let i = 0; i < 3; i++) expect(outcomeOf(eventOf(1, text)).body).toBe(body);
      expect(outcomeOf(eventOf(2, text)).body).not.toBe(body);
    }
  });

  it('equal results share their bytes again soon after many different ones', () => {
    for (let i = 0; i < 500; i++) outcomeOf(eventOf(i));
    for (let i = 0; i < 100; i++) outcomeOf(eventOf(1));
    expect(outcomeOf(eventOf(1)).body).toBe(outcomeOf(eventOf(1)).body);
  });

  it('results of queries and long results do not share their bytes', () => {
    const query = prepare(engines.compiled, schema, '{ event { id } }', settings);
    const bodyOf = () => (query(eventOf(1)) as ExecutionOutcome).body;
    expect(bodyOf()).not.toBe(bodyOf());
    const long = () => outcomeOf(eventOf(1, 'x'.repeat(5000))).body;
    expect(long()).not.toBe(long());
    expect(long()).toEqual(long());
  });

  it('results that differ in one byte keep their own bytes', () => {
    const bodies: [expected: string, body: string | Buffer][] = [];
    for (let i = 0; i < 2000; i++) {
      const length = hash(`length ${i}`, 7) % 9;
      const text = Array.from({ length }, (_, at) => 'ab'[hash(`${i} ${at}`, 3) % 2]).join('');
      const user = hash(`user ${i}`, 5) % 2 === 0 ? 'ann' : 'bob';
      const expected = { data: { event: { id: 7, text, forUser: user } } };
      bodies.push([JSON.stringify(expected), outcomeOf(eventOf(7, text, user)).body]);
    }
    // Compared after all executions, so that no body may change later.
    for (const [expected, body] of bodies) expect(body.toString()).toBe(expected);
  });

  it('resolvers run for each client and may return different values for one event', () => {
    const event = { id: 1, text: 'a', forUser: (_: unknown, user: string) => user };
    const forUser = (contextValue: string) =>
      run({ rootValue: { event }, variableValues: {}, contextValue }) as ExecutionOutcome;
    for (const user of ['ann', 'bob', 'bob', 'ann']) {
      expect(JSON.parse(forUser(user).body.toString()).data.event.forUser).toBe(user);
    }
  });

  it('errors and promises between equal results change neither', async () => {
    const broken = () => {
      throw new Error('broken');
    };
    const { body } = outcomeOf(eventOf(1));
    const partial = outcomeOf(eventOf(1, 'ü', broken));
    const waited = await run(eventOf(1, 'ü', Promise.resolve('ann')));
    expect(partial.kind).toBe('partial');
    expect(partial.errors).toHaveLength(1);
    expect(JSON.parse(waited.body.toString()).data.event.forUser).toBe('ann');
    const last = outcomeOf(eventOf(1));
    expect([last.body, last.kind, last.errors]).toEqual([body, 'data', []]);
  });
});
