/** @tags graphql */
import { buildSchema, versionInfo } from 'graphql';
import type { ExecutionOutcome } from '../../src/execution/types.ts';
import { hash } from './choices.ts';
import { engines, prepare, settingsOf } from './compare.ts';

const schema = buildSchema(`
  type Row { id: ID! text: String! again: String }
  type Query { rows(n: Int!): [Row!]! row(n: Int!): Row text: String nested: String }
`);
const settings = settingsOf();
const THEN = 'then';
const QUERY = 'query ($n: Int!) { rows(n: $n) { id text again } row(n: $n) { id text } }';
const run = prepare(engines.compiled, schema, QUERY, settings);
const reference = prepare(engines.graphqlJs, schema, QUERY, settings);

/** Rows whose values all contain the number of their request; some values are promises. */
function root(request: number, ticks: number) {
  const mark = `request ${request} `;
  let calls = 0;
  // The order is pseudo-random and the same under both engines.
  const late = async <T>(value: T): Promise<T> => {
    const turns = ticks === 0 ? 0 : hash(`${request} ${calls++}`, ticks) % 5;
    for (let i = 0; i < turns; i++) await new Promise(setImmediate);
    return value;
  };
  const row = (id: number) => ({
    id: `${request}-${id}`,
    text: id % 3 === 0 ? () => late(mark.repeat(1 + ((request + id) % 20))) : mark.repeat(id % 7),
    again: async () => {
      if ((request + id) % 11 === 0) throw new Error(mark);
      return late(mark);
    },
  });
  return {
    rows: ({ n }: { n: number }) => Array.from({ length: n }, (_, id) => row(id)),
    row: ({ n }: { n: number }) => late(row(n)),
  };
}

const text = async (outcome: ExecutionOutcome | Promise<ExecutionOutcome>): Promise<string> =>
  (await outcome).body.toString();

describe('concurrent executions', () => {
  it('concurrent executions share no bytes', async () => {
    const requests = Array.from({ length: 200 }, (_, index) => index);
    const start = (index: number) => ({
      rootValue: root(index, index % 4),
      variableValues: { n: index % 40 },
    });
    const expected = await Promise.all(requests.map((index) => text(reference(start(index)))));
    for (let round = 0; round < 3; round++) {
      const outcomes = await Promise.all(requests.map(async (index) => run(start(index))));
      // Read after all executions, when every buffer has been used again.
      expect(outcomes.map(({ body }) => body.toString())).toEqual(expected);
    }
  });

  it('responses of any length keep their bytes while later ones are written', () => {
    const own = prepare(engines.compiled, schema, '{ text nested }', settings);
    const sizes = [0, 9, 4_000, 16_300, 16_384, 16_500, 70_000, 300_000, 1_200_000];
    const made = [...sizes, ...sizes.toReversed(), ...sizes].map((size, index) => {
      const rootValue = { text: String(index).repeat(size), nested: `${index}` };
      return { rootValue, outcome: own({ rootValue }) as ExecutionOutcome };
    });
    for (const { rootValue, outcome } of made) {
      expect(outcome.body.toString()).toBe(JSON.stringify({ data: rootValue }));
    }
  });

  it('the engine uses each released buffer again for one response', () => {
    const own = buildSchema('type Query { texts: [String!]! }');
    const operation = prepare(engines.compiled, own, '{ texts }', settings);
    const textsOf = (name: string): string[] =>
      Array.from({ length: 500 }, (_, id) => `${name} ${id} `.padEnd(200, name));
    const make = (name: string): ExecutionOutcome =>
      operation({ rootValue: { texts: textsOf(name) } }) as ExecutionOutcome;
    make('first').release?.();
    const second = make('second');
    const kept = make('kept');
    const place = ({ body }: ExecutionOutcome): unknown => (body as Buffer).buffer;
    for (let time = 0; time < 3; time++) second.release?.();
    const [third, fourth] = [make('third'), make('fourth')];
    expect(place(third) === place(second)).toBe(true);
    expect(new Set([kept, third, fourth].map(place)).size).toBe(3);
    for (const [outcome, name] of [
      [kept, 'kept'],
      [third, 'third'],
      [fourth, 'fourth'],
    ] as const) {
      expect(outcome.body.toString() === JSON.stringify({ data: { texts: textsOf(name) } })).toBe(true);
    }
  });

  it('asynchronous responses keep their bytes until they are released', async () => {
    const own = prepare(engines.compiled, schema, '{ text nested }', settings);
    const kept: [ExecutionOutcome, string][] = [];
    for (let index = 0; index < 60; index++) {
      const mark = `response ${index} `;
      const nested = index % 2 === 0 ? async (): Promise<string> => mark : mark;
      const outcome = await own({ rootValue: { text: mark.repeat(4_000), nested } });
      const expected = JSON.stringify({ data: { text: mark.repeat(4_000), nested: mark } });
      expect(outcome.body.toString()).toBe(expected);
      if (index % 3 === 0) kept.push([outcome, expected]);
      else outcome.release?.();
    }
    for (const [{ body }, expected] of kept) expect(body.toString()).toBe(expected);
  });

  it('an execution inside a resolver shares no bytes with the outer one', async () => {
    const inner = prepare(engines.compiled, schema, '{ text }', settings);
    const outer = prepare(engines.compiled, schema, '{ a: text nested b: text }', settings);
    const nested = (): string => {
      const outcome = inner({ rootValue: { text: 'inner '.repeat(3000) } }) as ExecutionOutcome;
      return outcome.body.toString().slice(0, 20);
    };
    const outcome = await outer({ rootValue: { text: 'outer', nested } });
    expect(JSON.parse(outcome.body.toString()).data).toEqual({
      a: 'outer',
      nested: '{"data":{"text":"inn',
      b: 'outer',
    });
  });

  it('an execution of the same operation inside a resolver shares no bytes with the outer one', async () => {
    const own = buildSchema('type Query { text: String again: String tail: String }');
    for (const engine of Object.values(engines)) {
      const operation = prepare(engine, own, '{ text again tail }', settings);
      const rootAt = (depth: number) => ({
        text: `${depth} `.repeat(3000),
        again: async () => (depth === 0 ? 'end' : text(operation({ rootValue: rootAt(depth - 1) }))),
        tail: () => Promise.resolve(`tail ${depth}`),
      });
      let body = await text(operation({ rootValue: rootAt(5) }));
      for (let depth = 5; depth >= 0; depth--) {
        const { data } = JSON.parse(body);
        expect([data.text, data.tail]).toEqual([`${depth} `.repeat(3000), `tail ${depth}`]);
        body = data.again;
      }
      expect(body).toBe('end');
    }
  });

  it('the engine accepts a thenable that settles while another field is written', async () => {
    const waiting: ((value: string) => void)[] = [];
    let settled = false;
    // 16 calls `then` synchronously, 17 one microtask later.
    const eager = {
      [THEN]: (accept: (value: string) => void) => {
        if (settled) accept('early');
        else waiting.push(accept);
      },
    };
    const source = {
      first: () => eager,
      text: () => {
        settled = true;
        for (const accept of [...waiting, ...waiting]) accept('early');
        return 'now';
      },
    };
    const own = buildSchema('type Query { first: String text: String }');
    const outcome = await prepare(engines.compiled, own, '{ first text }', settings)({ rootValue: source });
    expect(JSON.parse(outcome.body.toString()).data).toEqual({ first: 'early', text: 'now' });
  });
});

describe('a failed execution', () => {
  it.each([0, 1, 2, 5, 9, 19])(
    'a failed execution does not affect the next one when row %i throws',
    async (failing) => {
      const rows = Array.from({ length: 20 }, (_, id) => ({
        id,
        text: () => {
          if (id === failing) throw new Error('row');
          return id % 2 === 0 ? 'now' : Promise.resolve('later');
        },
      }));
      const wrong = await run({ rootValue: { rows: () => rows, row: () => null }, variableValues: { n: 1 } });
      expect(JSON.parse(wrong.body.toString()).data).toBeNull();
      const inputs = () => ({ rootValue: root(7, 1), variableValues: { n: 9 } });
      expect(await text(run(inputs()))).toBe(await text(reference(inputs())));
    },
  );

  it('an execution rejects when formatErrors throws, and the next one succeeds', async () => {
    let broken = true;
    const throwing = settingsOf({
      formatErrors: (errors) => {
        if (broken) throw new Error('formatting');
        return errors.map((error) => error.toJSON());
      },
    });
    const failing = prepare(engines.compiled, schema, '{ text nested }', throwing);
    const rootValue = { text: () => Promise.reject(new Error('late')), nested: 'n' };
    await expect(async () => failing({ rootValue })).rejects.toThrow('formatting');
    broken = false;
    expect(JSON.parse(await text(failing({ rootValue }))).data).toEqual({ text: null, nested: 'n' });
  });

  it('a value without JSON is an error of its field, or with graphql-js of the response', async () => {
    const own = buildSchema('scalar Any type Query { any: Any list: [Any] }');
    const circular: Record<string, unknown> = {};
    circular['self'] = circular;
    const rootValue = { any: 1n, list: [Promise.resolve(circular), 2, () => 1, Symbol('s')] };
    const outcome = await prepare(engines.compiled, own, '{ any list }', settings)({ rootValue });
    const paths = outcome.errors.map(({ path }) => path?.join('.')).sort();
    expect(paths).toEqual(['any', 'list.0', 'list.2', 'list.3']);
    expect(JSON.parse(outcome.body.toString()).data).toEqual({ any: null, list: [null, 2, null, null] });
    const whole = await prepare(engines.graphqlJs, own, '{ any list }', settings)({ rootValue });
    expect(whole.errors.map(({ originalError }) => originalError)).toEqual([expect.any(TypeError)]);
    expect(JSON.parse(whole.body.toString()).data).toBeNull();
  });

  it('a mutation with a value without JSON fails, and later ones succeed', async () => {
    const own = buildSchema('scalar Any type Query { a: Any } type Mutation { any: Any text: String }');
    for (const engine of Object.values(engines)) {
      const failing = prepare(engine, own, 'mutation { any text }', settings);
      const rootValue = { any: 1n, text: 'x'.repeat(9000) };
      expect((await failing({ rootValue })).errors).toHaveLength(1);
      const outcomes = await Promise.all(
        [1, 2, 3].map((any) => failing({ rootValue: { ...rootValue, any } })),
      );
      const texts = outcomes.map(({ body }) => JSON.parse(body.toString()).data);
      expect(texts).toEqual([1, 2, 3].map((any) => ({ ...rootValue, any })));
    }
  });

  it('the engine writes an object of a custom scalar when its field completes, and graphql-js at the end', async () => {
    const own = buildSchema('scalar Any type Query { a: Any } type Mutation { add(n: Int!): Any }');
    const listsAfter = async (engine: keyof typeof engines): Promise<unknown> => {
      const list: number[] = [];
      const add = async ({ n }: { n: number }): Promise<number[]> => {
        list.push(n);
        return list;
      };
      const mutation = prepare(engines[engine], own, 'mutation { a: add(n: 1) b: add(n: 2) }', settings);
      return JSON.parse(await text(mutation({ rootValue: { add } }))).data;
    };
    expect(await listsAfter('compiled')).toEqual({ a: [1], b: [1, 2] });
    expect(await listsAfter('graphqlJs')).toEqual({ a: [1, 2], b: [1, 2] });
  });

  it('an execution ignores a value without JSON that an error removes', async () => {
    const own = buildSchema('scalar Any type Node { any: Any name: String! } type Query { node: Node }');
    const failing = prepare(engines.compiled, own, '{ node { any name } }', settings);
    expect(JSON.parse(await text(failing({ rootValue: { node: { any: 1n } } }))).data).toEqual({
      node: null,
    });
  });
});

const on17 = versionInfo.major >= 17;

describe('a client that disconnects', () => {
  it.each([0, 1, 2, 3, 6])(
    'an abort after %i microtasks rejects the execution on graphql 17',
    async (microtasks) => {
      const controller = new AbortController();
      const calls: string[] = [];
      const slow = async (): Promise<object> => {
        for (let i = 0; i < 5; i++) await undefined;
        return { id: 1, text: () => calls.push('text') };
      };
      const promise = run({
        rootValue: { rows: () => [slow()], row: slow },
        variableValues: { n: 1 },
        signal: controller.signal,
      });
      for (let i = 0; i < microtasks; i++) await undefined;
      controller.abort(new Error('disconnected'));
      const outcome = await Promise.resolve(promise).catch(String);
      if (on17 && microtasks < 5) expect(outcome).toContain('disconnected');
      const inputs = () => ({ rootValue: root(3, 1), variableValues: { n: 9 } });
      expect(await text(run(inputs()))).toBe(await text(reference(inputs())));
      if (on17 && microtasks < 5) expect(calls).toEqual([]);
    },
  );
});
