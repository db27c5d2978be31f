import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { buildSchema } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createCache } from '../../src/core/documents/cache.ts';

const schema = buildSchema('type Query { hello: String }');
const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const good = (index: number): string => `{ hello } # ${index}`;
const long = (index: number): string => `{ hello } # ${index} ${'x'.repeat(90_000)}`;

describe('a flood of documents', () => {
  const parsed = new Set<unknown>();
  const remember = (message: unknown): unknown => parsed.add((message as { source: unknown }).source);
  const limits = { batch: 5000, rootFields: Infinity, fields: Infinity, bodyBytes: 10 << 20 };
  let ask: (queries: string[]) => Promise<Set<unknown>>;

  beforeEach(() => {
    subscribe('espalier:graphql:parse', remember);
    const handler = graphqlHTTP(schema, { batching: true, limits, rootValue: { hello: 'world' } });
    // Which of these documents were not in the cache.
    ask = async (queries) => {
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
  ])('%s pushes no good one out, and is forgotten itself', async (_what, junk) => {
    const kept = numbers(400).map(good);
    expect(await ask(kept)).toEqual(new Set(kept));
    await ask(numbers(900).map(junk));
    expect(await ask(kept)).toEqual(new Set());
    expect(await ask([junk(899)])).toEqual(new Set());
    expect(await ask([junk(0)])).toEqual(new Set([junk(0)]));
  });

  it.each([
    ['many', numbers(1200).map(good)],
    ['long', numbers(30).map(long)],
  ])('that are %s is forgotten from the start', async (_what, flood) => {
    const [first, last] = [flood[0] as string, flood.at(-1) as string];
    await ask(flood);
    expect(await ask([last])).toEqual(new Set());
    expect(await ask([first])).toEqual(new Set([first]));
  });

  it('leaves in the cache what is asked for again and again', async () => {
    await ask([good(0)]);
    for (const round of numbers(8)) {
      await ask(numbers(300).map((index) => good(1 + round * 300 + index)));
      expect(await ask([good(0)])).toEqual(new Set());
    }
  });
});

describe('the cache', () => {
  const most = { entries: 20, characters: 400 };
  const held = (keys: string[]): string[] => {
    const cache = createCache<string>(most);
    for (const key of keys) cache.set(key, key);
    return keys.filter((key) => cache.get(key) !== undefined);
  };

  it.each([
    ['short', numbers(500).map(String)],
    ['long', numbers(500).map((index) => `${index}`.padStart(90, ' '))],
    ['mixed', numbers(500).map((index) => `${index}`.padStart(1 + ((index * 37) % 190), ' '))],
  ])('holds no more than it may of %s keys, and the newest one', (_what, keys) => {
    const found = held(keys);
    expect(found.length).toBeLessThanOrEqual(most.entries);
    expect(found.join('').length).toBeLessThanOrEqual(most.characters);
    expect(found).toContain(keys.at(-1));
  });

  it('takes nothing that would fill half of it', () => {
    expect(held(['a', 'x'.repeat(201)])).toEqual(['a']);
  });
});

it('new documents that are long take turns of their own, one step each', async () => {
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
    // Between any two steps the event loop has turned.
    expect(steps.join(' ')).not.toMatch(/[a-z] [a-z]/);
    // Known ones have nothing to wait for.
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
