/** @tags graphql */
import { channel } from 'node:diagnostics_channel';
import * as fc from 'fast-check';
import {
  buildSchema,
  type GraphQLFieldResolver,
  getOperationAST,
  type OperationDefinitionNode,
  parse,
} from 'graphql';
import { compiledIncrementally } from '../../src/engine/index.ts';
import { executeIncrementally } from '../../src/execution/graphql-js.ts';
import type { ExecutionOutcome, IncrementalEngine, IncrementalFormat } from '../../src/execution/types.ts';
import { DIRECTIVES, V17 } from '../graphql/incremental-schema.ts';
import { readChoices } from './choices.ts';
import { settingsOf } from './compare.ts';
import { Gates, orderedSchema, randomDeferred, resolveOrdered } from './ordered-execution.ts';

const schema = orderedSchema();
const FORMATS: readonly IncrementalFormat[] = ['v0.2', '20220824'];
const CASES = 300;

/** Prepares a document for an engine. */
function prepare(engine: IncrementalEngine, source: string, format: IncrementalFormat) {
  const document = parse(source);
  const operation = getOperationAST(document) as OperationDefinitionNode;
  const fieldResolver = resolveOrdered as GraphQLFieldResolver<unknown, unknown>;
  const run = engine(
    { kind: 'operation', schema, source, document, operation },
    settingsOf({ fieldResolver }),
    format,
  );
  return (gates: Gates, signal?: AbortSignal) =>
    run({ rootValue: {}, contextValue: gates, variableValues: { yes: true, no: false }, signal });
}

/** Prepares a document whose fields are properties of the root value. */
function prepareWith(
  rootValue: object,
  source: string,
  format: IncrementalFormat = 'v0.2',
  engine: IncrementalEngine = compiledIncrementally,
) {
  const properties = buildSchema(
    `${DIRECTIVES} scalar Big type Query { ${PROPERTIES} } type Node { ${PROPERTIES} }`,
  );
  const document = parse(source);
  const operation = getOperationAST(document) as OperationDefinitionNode;
  const run = engine(
    { kind: 'operation', schema: properties, source, document, operation },
    settingsOf(),
    format,
  );
  return () => run({ rootValue, contextValue: undefined, variableValues: undefined });
}

const PROPERTIES = 'id: ID name: String slow: String big: Big node: Node';

/** Lets everything happen that does not wait for a gate. */
async function untilIdle(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
}

/** Waits for a promise while the gates open one after the other. */
async function whileReleasing<T>(gates: Gates, promise: T | Promise<T>): Promise<T> {
  let isSettled = false;
  const settle = (): void => {
    isSettled = true;
  };
  Promise.resolve(promise).then(settle, settle);
  await untilIdle();
  while (!isSettled && gates.release()) await untilIdle();
  return promise;
}

/** The body of the first payload and the texts of the others, or the error that was thrown. */
async function textsOf(
  run: (gates: Gates) => ExecutionOutcome | Promise<ExecutionOutcome>,
  seed: number,
): Promise<readonly string[]> {
  const gates = new Gates(seed);
  const { kind, body, rest } = await whileReleasing(gates, run(gates));
  const texts = [kind, body.toString()];
  if (rest === undefined) return texts;
  for (;;) {
    const { done, value } = await whileReleasing(gates, rest.next());
    if (done === true) break;
    texts.push(value);
  }
  while (gates.release()) await untilIdle();
  return texts;
}

const input = fc.record({
  bytes: fc.uint8Array({ minLength: 40, maxLength: 300, size: 'max' }),
  seed: fc.noShrink(fc.nat(1_000_000)),
  format: fc.constantFrom(...FORMATS),
});

/** Fails if a promise was rejected that nothing handles. */
async function withoutUnhandled(run: () => Promise<void>): Promise<void> {
  const unhandled: unknown[] = [];
  const notice = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', notice);
  try {
    await run();
    await untilIdle();
  } finally {
    process.off('unhandledRejection', notice);
  }
  expect(unhandled).toEqual([]);
}

if (V17) describe('incremental execution of the compiled engine', tests);
else
  it('a random deferred document is valid with graphql 16', () => {
    expect(parse(randomDeferred(readChoices(new Uint8Array(40)))).definitions).not.toHaveLength(0);
  });

function tests(): void {
  it(`the payloads of the compiled engine equal those of graphql-js, byte for byte, in ${CASES} random cases`, async () => {
    let streamed = 0;
    const property = fc.asyncProperty(input, async ({ bytes, seed, format }) => {
      const source = randomDeferred(readChoices(bytes));
      const ours = prepare(compiledIncrementally, source, format);
      const expected = await textsOf(prepare(executeIncrementally, source, format), seed);
      if (expected.length > 2) streamed++;
      // The second execution uses the compiled form of the first.
      for (let time = 0; time < 2; time++) {
        expect({ source, texts: await textsOf(ours, seed) }).toEqual({ source, texts: expected });
      }
    });
    await withoutUnhandled(() => fc.assert(property, { numRuns: CASES, seed: 22 }));
    expect(streamed).toBeGreaterThan(CASES / 3);
  }, 300_000);

  it('the compiled engine executes the initial payload of a deferred document', async () => {
    const run = prepare(compiledIncrementally, '{ id ... @defer { name } }', 'v0.2');
    const { body, rest } = await run(new Gates(1));
    expect(Buffer.isBuffer(body)).toBe(true);
    expect(body.toString()).toContain('"pending":[{"id":"0","path":[]}],"hasNext":true}');
    await rest?.return();
  });

  it('an abort while the first payload waits rejects the execution, and no further resolver is called', async () => {
    const property = fc.asyncProperty(input, fc.nat(4), async ({ bytes, seed, format }, after) => {
      const run = prepare(compiledIncrementally, randomDeferred(readChoices(bytes)), format);
      const gates = new Gates(seed);
      const controller = new AbortController();
      const outcome = run(gates, controller.signal);
      if (!(outcome instanceof Promise)) return;
      const ended = outcome.then(({ rest }) => rest?.return(), String);
      for (let step = 0; step < after; step++) {
        gates.release();
        await untilIdle();
      }
      controller.abort(new Error('the client has disconnected'));
      await untilIdle();
      const calls = gates.calls.length;
      while (gates.release()) await untilIdle();
      expect(gates.calls).toHaveLength(calls);
      await ended;
    });
    await withoutUnhandled(() => fc.assert(property, { numRuns: CASES, seed: 24 }));
  }, 120_000);

  it('the compiled engine handles a promise in a parent value that rejects before its part starts', async () => {
    const rootValue = { id: '1', name: Promise.reject(new Error('rejected early')) };
    const run = prepareWith(rootValue, '{ id ... @defer { name } }');
    await withoutUnhandled(async () => {
      const { rest } = await run();
      await untilIdle();
      expect((await rest?.next())?.value).toContain('rejected early');
      expect(await rest?.next()).toEqual({ done: true, value: undefined });
    });
  });

  it('the compiled engine handles the promises of parts that never start', async () => {
    const later = new Promise((_, reject) => setImmediate(() => reject(new Error('rejected later'))));
    const run = prepareWith({ id: '1', node: { name: later } }, '{ id ... @defer { node { name } } }');
    await withoutUnhandled(async () => {
      const { rest } = await run();
      await rest?.return();
      await untilIdle();
    });
  });

  it('overlapping calls of next() of the remaining results return different payloads', async () => {
    const rootValue = { id: '1', slow: () => new Promise((resolve) => setImmediate(resolve, 'slow')) };
    const { rest } = await prepareWith(rootValue, '{ id ... @defer { name } ... @defer { slow } }')();
    const results = await Promise.all([rest?.next(), rest?.next(), rest?.next()]);
    expect(results.map((result) => result?.done)).toEqual([false, false, true]);
  });

  it.each(['v0.2', '20220824'] as const)(
    'a deferred value that cannot be written as JSON fails at its field, or with graphql-js its stream, in the format %s',
    async (format) => {
      const query = '{ id ... @defer { big } ... @defer { name } }';
      const read = async (engine: typeof compiledIncrementally): Promise<string> => {
        const { rest } = await prepareWith({ id: '1', big: () => 1n, name: 'n' }, query, format, engine)();
        let text = '';
        for (let step = await rest?.next(); step?.done === false; step = await rest?.next())
          text += step.value;
        return text;
      };
      const text = await read(compiledIncrementally);
      expect(text).toContain('BigInt');
      expect(text).toContain('"name":"n"');
      if (format === 'v0.2') expect(text.match(/"id":"[01]"(,"errors":\[[^\]]*\])?\}/g)).toHaveLength(2);
      await expect(read(executeIncrementally)).rejects.toThrow('BigInt');
    },
  );

  it('graphql-js executes a deferred operation while a tracing channel has subscribers', async () => {
    const start = channel('tracing:graphql:resolve:start');
    const fields: unknown[] = [];
    const listener = (message: unknown): void => void fields.push(Reflect.get(Object(message), 'fieldName'));
    start.subscribe(listener);
    try {
      const { body, rest } = await prepareWith({ id: '1', name: 'n' }, '{ id ... @defer { name } }')();
      expect(typeof body).toBe('string');
      await rest?.next();
    } finally {
      start.unsubscribe(listener);
    }
    expect(fields).toEqual(['id', 'name']);
  });

  it.each(['return', 'abort'])(
    'no resolver is called after %s at any point of a random execution',
    async (way) => {
      const property = fc.asyncProperty(input, fc.nat(12), async ({ bytes, seed, format }, after) => {
        const run = prepare(compiledIncrementally, randomDeferred(readChoices(bytes)), format);
        const gates = new Gates(seed);
        const controller = new AbortController();
        const { rest } = await whileReleasing(gates, run(gates, controller.signal));
        if (rest === undefined) return;
        const next = rest.next().catch((error: unknown) => String(error));
        await untilIdle();
        for (let step = 0; step < after; step++) {
          gates.release();
          await untilIdle();
        }
        const calls = gates.calls.length;
        if (way === 'return') expect(await rest.return()).toEqual({ done: true, value: undefined });
        else controller.abort(new Error('the client has disconnected'));
        await next;
        while (gates.release()) await untilIdle();
        expect(gates.calls).toHaveLength(calls);
        if (way === 'abort') await rest.next().catch(() => undefined);
        expect(await rest.next()).toEqual({ done: true, value: undefined });
      });
      await withoutUnhandled(() => fc.assert(property, { numRuns: CASES / 4, seed: 23 }));
    },
    120_000,
  );
}
