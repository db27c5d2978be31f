/** @tags graphql slow */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { buildSchema } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createDocumentCache } from '../../src/core/documents.ts';
import { run } from './server.ts';

const schema = buildSchema('type Query { hello: String }');
const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const good = (index: number): string => `{ hello } # ${index}`;
const long = (index: number): string => `{ hello } # ${index} ${'x'.repeat(90_000)}`;

describe('a flood of documents', () => {
  const parsed = new Set<unknown>();
  const remember = (message: unknown): unknown => parsed.add((message as { source: unknown }).source);
  const limits = { rootFields: Infinity, fields: Infinity, bodyBytes: 10 << 20 };
  let sendRequest: (queries: string[]) => Promise<Set<unknown>>;

  beforeEach(() => {
    subscribe('espalier:graphql:parse', remember);
    const handler = graphqlHTTP(schema, {
      batching: 5000,
      limits,
      rootValue: { hello: 'world' },
      documents: { cacheBytes: 4 << 20 },
    });
    // The documents that were not in the cache.
    sendRequest = async (queries) => {
      parsed.clear();
      await request(handler)
        .post('/graphql')
        .send(queries.map((query) => ({ query })))
        .expect(200);
      return new Set(parsed);
    };
  });
  afterEach(() => unsubscribe('espalier:graphql:parse', remember));

  it.each([
    ['that are not valid', (index: number) => `{ nothing${index} }`],
    ['that cannot be parsed', (index: number) => `{ ${index}`],
  ])('a flood of documents %s evicts no valid document', async (_what, junk) => {
    const kept = numbers(400).map(good);
    expect(await sendRequest(kept)).toEqual(new Set(kept));
    await sendRequest(numbers(900).map(junk));
    expect(await sendRequest(kept)).toEqual(new Set());
    expect(await sendRequest([junk(899)])).toEqual(new Set());
    expect(await sendRequest([junk(0)])).toEqual(new Set([junk(0)]));
  });

  it.each([
    ['many', numbers(1200).map(good)],
    ['long', numbers(30).map(long)],
  ])('a flood of %s documents evicts the oldest one', async (_what, flood) => {
    const [first, last] = [flood[0] as string, flood.at(-1) as string];
    await sendRequest(flood);
    expect(await sendRequest([last])).toEqual(new Set());
    expect(await sendRequest([first])).toEqual(new Set([first]));
  });

  it('a flood of documents leaves frequently used documents in the cache', async () => {
    await sendRequest([good(0)]);
    for (const round of numbers(8)) {
      await sendRequest(numbers(300).map((index) => good(1 + round * 300 + index)));
      expect(await sendRequest([good(0)])).toEqual(new Set());
    }
  });
});

describe('the document cache', () => {
  const maxBytes = 800;
  const bytesOf = (key: string): number => key.length;
  const stored = (keys: string[]): string[] => {
    const cache = createDocumentCache<string>(maxBytes);
    for (const key of keys) cache.set(schema, key, key, bytesOf(key));
    return keys.filter((key) => cache.get(schema, key) !== undefined);
  };

  it.each([
    ['short', numbers(500).map(String)],
    ['long', numbers(500).map((index) => `${index}`.padStart(90, ' '))],
    ['mixed', numbers(500).map((index) => `${index}`.padStart(1 + ((index * 37) % 99), ' '))],
  ])('the document cache stores at most its budget of %s documents, and the newest one', (_what, keys) => {
    const found = stored(keys);
    expect(found.join('').length).toBeLessThanOrEqual(maxBytes);
    expect(found).toContain(keys.at(-1));
  });

  it('the document cache stores no document that takes more than an eighth of it', () => {
    expect(stored(['a', 'x'.repeat(100), 'y'.repeat(101)])).toEqual(['a', 'x'.repeat(100)]);
  });

  it('the document cache evicts documents when others retain more memory', () => {
    const cache = createDocumentCache<string>(maxBytes);
    const found = (): string[] => ['a', 'b', 'c'].filter((key) => cache.get(schema, key) !== undefined);
    cache.set(schema, 'a', 'a', 1);
    cache.set(schema, 'b', 'b', 1);
    expect(cache.charge(schema, 'a', 90)).toBe(true);
    expect(cache.charge(schema, 'a', 10)).toBe(false);
    expect(found()).toEqual(['a', 'b']);
    cache.set(schema, 'c', 'c', 1);
    // Two generations have to be filled before an unused document is evicted.
    for (let round = 0; round < 2; round++) {
      cache.charge(schema, 'c', 401);
      cache.get(schema, 'c');
    }
    expect(found()).not.toContain('a');
    expect(cache.charge(schema, 'a', 1)).toBe(false);
  });

  it('the document cache keeps the documents of schemas apart', () => {
    const cache = createDocumentCache<string>(maxBytes);
    const other = buildSchema('type Query { other: String }');
    cache.set(schema, 'a', 'first', 1);
    cache.set(other, 'a', 'second', 1);
    cache.set(schema, 'b', 'third', 1);
    const read = [
      cache.get(schema, 'a'),
      cache.get(other, 'a'),
      cache.get(schema, 'b'),
      cache.get(other, 'b'),
    ];
    expect(read).toEqual(['first', 'second', 'third', undefined]);
  });
});

it('graphqlHTTP prepares long new documents in separate iterations of the event loop', async () => {
  const steps: string[] = [];
  const count = (step: string) => (): unknown => steps.push(step);
  const [parse, validate] = [count('parse'), count('validate')];
  subscribe('espalier:graphql:parse', parse);
  subscribe('espalier:graphql:validate', validate);
  const rootValue = { hello: () => void steps.push('execute') };
  const handler = graphqlHTTP(schema, { batching: true, rootValue });
  let turning = true;
  const turn = (): void => {
    if (steps.at(-1) !== '|') steps.push('|');
    if (turning) setImmediate(turn);
  };
  const query = `{ hello } # ${'x'.repeat(3000)}`;
  try {
    setImmediate(turn);
    await request(handler)
      .post('/graphql')
      .send([{ query: `${query}1` }, { query: `${query}2` }])
      .expect(200);
    const worked = steps.filter((step) => step !== '|');
    expect(worked.sort()).toEqual(['execute', 'execute', 'parse', 'parse', 'validate', 'validate']);
    // The event loop has run between any two steps.
    expect(steps.join(' ')).not.toMatch(/[a-z] [a-z]/);
    // Cached documents do not wait.
    steps.length = 0;
    await request(handler)
      .post('/graphql')
      .send({ query: `${query}1` })
      .expect(200);
    expect(steps.filter((step) => step !== '|')).toEqual(['execute']);
  } finally {
    turning = false;
    unsubscribe('espalier:graphql:parse', parse);
    unsubscribe('espalier:graphql:validate', validate);
  }
});

describe('many new documents at the same time', () => {
  /** The number of documents that were parsed or validated in each iteration of the event loop that prepared any. */
  async function preparedPerIteration(send: () => Promise<unknown>): Promise<number[]> {
    const counts: number[] = [];
    let current = 0;
    let running = true;
    const count = (): void => void current++;
    const iterate = (): void => {
      if (current > 0) counts.push(current);
      current = 0;
      if (running) setImmediate(iterate);
    };
    subscribe('espalier:graphql:parse', count);
    subscribe('espalier:graphql:validate', count);
    setImmediate(iterate);
    try {
      await send();
    } finally {
      running = false;
      unsubscribe('espalier:graphql:parse', count);
      unsubscribe('espalier:graphql:validate', count);
    }
    return counts;
  }

  it.each(['compiled', 'graphql-js'] as const)(
    'graphqlHTTP prepares 300 long documents one after the other, under %s',
    async (engine) => {
      const { url, close } = await run(graphqlHTTP(schema, { engine, rootValue: { hello: 'world' } }));
      const send = async (index: number): Promise<unknown> => {
        const fields = numbers(90).map((alias) => `a${alias}x${index}: hello # ${'x'.repeat(40)}\n`);
        const response = await fetch(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ query: `query q${index} { ${fields.join(' ')} }` }),
        });
        return response.json();
      };
      let results: unknown[] = [];
      const counts = await preparedPerIteration(async () => {
        results = await Promise.all(numbers(300).map(send));
      });
      await close();
      expect(results.every((result) => Object.keys((result as { data: object }).data).length === 90)).toBe(
        true,
      );
      expect(new Set(counts)).toEqual(new Set([1]));
    },
  );

  it('graphqlHTTP prepares only some of many short documents in one iteration of the event loop', async () => {
    const handler = graphqlHTTP(schema, {
      batching: 500,
      limits: { rootFields: Infinity },
      rootValue: { hello: 'world' },
    });
    const queries = numbers(500).map((index) => ({ query: `{ hello } # ${index} ${'x'.repeat(700)}` }));
    let texts: string[] = [];
    const counts = await preparedPerIteration(async () => {
      const { body } = await request(handler).post('/graphql').send(queries).expect(200);
      texts = body.map((result: unknown) => JSON.stringify(result));
    });
    expect(new Set(texts)).toEqual(new Set(['{"data":{"hello":"world"}}']));
    expect(texts).toHaveLength(500);
    // Parsing and validation count separately.
    expect(Math.max(...counts)).toBeLessThanOrEqual(24);
    expect(counts.length).toBeGreaterThan(500);
  });
});
