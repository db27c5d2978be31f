/** @tags graphql */
import { AsyncLocalStorage } from 'node:async_hooks';
import { channel, tracingChannel } from 'node:diagnostics_channel';
import { buildSchema, versionInfo } from 'graphql';
import { engines, prepare } from './compare.ts';
import { runInProcess } from './run-in-process.ts';

// graphql 16 has no tracing channels, so espalier publishes nothing on them.
const V17 = versionInfo.major >= 17;
const SDL = 'type Query { who: String later: String }  type Subscription { tick: String }';

/** Subscribes to the starts of some channels while `run` is called. Returns the names, in order. */
async function startsOf(names: readonly string[], run: () => unknown): Promise<readonly string[]> {
  const starts: string[] = [];
  const subscriptions = names.map((name) => {
    const start = channel(`tracing:graphql:${name}:start`);
    const listener = (): void => void starts.push(name);
    start.subscribe(listener);
    return () => start.unsubscribe(listener);
  });
  await run();
  for (const unsubscribe of subscriptions) unsubscribe();
  return starts;
}

const ALL = ['execute', 'execute:variableCoercion', 'execute:rootSelectionSet', 'resolve'];

if (V17) {
  it('both engines publish the same events on the tracing channels of graphql 17 in random cases', () => {
    const words = ['--cases=200', '--seed=20261122', '--traced'];
    expect(runInProcess('bench/engine-fuzz.mjs', [], words)).toContain('200 cases, no difference');
  }, 300_000);
}

it.each(ALL)(
  'the compiled engine executes and publishes events while graphql:%s has subscribers',
  async (name) => {
    const run = prepare(engines.compiled, buildSchema(SDL), '{ who later }');
    const rootValue = { who: 'me', later: async () => 'soon' };
    for (let time = 0; time < 2; time++) {
      const starts = await startsOf([name], async () => {
        const { body } = await run({ rootValue });
        // graphql-js executes while the calls of resolvers are traced.
        expect(Buffer.isBuffer(body)).toBe(!V17 || name !== 'resolve');
        expect(body.toString()).toBe('{"data":{"who":"me","later":"soon"}}');
      });
      expect(starts).toEqual(V17 ? (name === 'resolve' ? ['resolve', 'resolve'] : [name]) : []);
    }
    expect((await run({ rootValue })).body.toString()).toBe('{"data":{"who":"me","later":"soon"}}');
  },
);

it('an event of a subscription is published without a second coercion of its variables', async () => {
  const run = prepare(engines.compiled, buildSchema(SDL), 'subscription { tick }');
  const starts = await startsOf(ALL.slice(0, 3), () => run({ rootValue: { tick: 'tock' } }));
  expect(starts).toEqual(V17 ? ['execute:rootSelectionSet'] : []);
});

it('resolvers run in the async context that a tracer binds to the start of a step', async () => {
  const storage = new AsyncLocalStorage<string>();
  const bound = ['execute', 'resolve'].map((name) => channel(`tracing:graphql:${name}:start`));
  for (const start of bound) {
    start.bindStore(storage, (context) => (context as { fieldName?: string }).fieldName ?? 'operation');
  }
  try {
    const run = prepare(engines.compiled, buildSchema(SDL), '{ who }');
    const { body } = await run({ rootValue: { who: () => storage.getStore() ?? 'none' } });
    expect(body.toString()).toBe(JSON.stringify({ data: { who: V17 ? 'who' : 'none' } }));
  } finally {
    for (const start of bound) start.unbindStore(storage);
  }
});

it('the published result stays the same after the response was released', async () => {
  const contexts: { result?: unknown }[] = [];
  const tracing = tracingChannel('graphql:execute');
  const end = (context: unknown): void => void contexts.push(context as { result?: unknown });
  tracing.end.subscribe(end);
  try {
    const run = prepare(engines.compiled, buildSchema(SDL), '{ who }');
    for (const letter of ['a', 'b', 'c']) {
      const outcome = await run({ rootValue: { who: letter.repeat(20_000) } });
      outcome.release?.();
    }
  } finally {
    tracing.end.unsubscribe(end);
  }
  const results = contexts.map(({ result }) => result);
  const expected = ['a', 'b', 'c'].map((letter) => ({ data: { who: letter.repeat(20_000) } }));
  expect(results).toEqual(V17 ? expected : []);
});
