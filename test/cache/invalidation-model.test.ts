/** @tags once */
import fc from 'fast-check';
import { createProcessStore } from '../../src/cache/store.ts';
import type { CacheEntry, CacheStore } from '../../types/response-cache.ts';
import { Bus, createRandom, type Link } from './simulated-bus.ts';

/** An event of a run, with the milliseconds since the one before. */
type Step =
  | { readonly do: 'read' | 'write'; readonly process: number; readonly key: number; readonly after: number }
  | { readonly do: 'cut' | 'heal'; readonly process: number; readonly after: number };

const PROCESSES = 3;
const KEYS = 3;

const process = fc.nat(PROCESSES - 1);
const key = fc.nat(KEYS - 1);
const after = fc.oneof(fc.nat(20), fc.nat(200), fc.nat(2500));
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: fc.record({ do: fc.constant('read' as const), process, key, after }) },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('write' as const), process, key, after }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('cut' as const), process, after }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('heal' as const), process, after }) },
  ),
  { minLength: 20, maxLength: 120 },
);

/** A database with several processes, each with a cache of its values. */
class World {
  hits = 0;
  readonly #database: number[] = Array(KEYS).fill(0);
  readonly #stores: readonly CacheStore[];
  readonly #links: readonly Link[];
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = createRandom(seed);
    const bus = new Bus(PROCESSES, () => Math.floor(this.#random() ** 3 * 300));
    this.#links = bus.links;
    this.#stores = bus.links.map((link) => createProcessStore(100_000, link));
  }

  run(step: Step): void {
    if (step.do === 'read') void this.#read(step.process, step.key);
    else if (step.do === 'write') void this.#write(step.process, step.key);
    else this.#links[step.process]?.[step.do]();
  }

  heal(): void {
    for (const link of this.#links) link.heal();
  }

  /** The stored results that are older than the database. */
  async stale(): Promise<string[]> {
    const stale: string[] = [];
    for (const [process, store] of this.#stores.entries()) {
      for (const [key, value] of this.#database.entries()) {
        const { entry } = await store.get(`${key}`);
        if (entry !== undefined && entry.body !== `${value}`) {
          stale.push(`process ${process} has ${entry.body} of key ${key}, the database ${value}`);
        }
      }
    }
    return stale;
  }

  async #read(process: number, key: number): Promise<void> {
    const store = this.#stores[process] as CacheStore;
    const { entry, version } = await store.get(`${key}`);
    if (entry !== undefined) {
      this.hits++;
      return;
    }
    const value = this.#database[key];
    await new Promise((resolve) => setTimeout(resolve, this.#random() ** 2 * 500));
    if (version !== undefined) await store.set(`${key}`, entryOf(`${value}`, `tag-${key}`), version);
  }

  /** An application repeats an invalidation that was not published. */
  async #write(process: number, key: number): Promise<void> {
    this.#database[key] = (this.#database[key] as number) + 1;
    for (let isDone = false; !isDone; ) {
      isDone = await Promise.resolve((this.#stores[process] as CacheStore).invalidate([`tag-${key}`])).then(
        () => true,
        () => new Promise<false>((resolve) => setTimeout(resolve, 100, false)),
      );
    }
  }
}

const entryOf = (body: string, tag: string): CacheEntry => ({
  body,
  policy: { maxAge: 60, sharedMaxAge: 60, scope: 'PUBLIC', vary: [], tags: [tag] },
  storedAt: Date.now(),
  lifetime: 600_000,
  expires: Date.now() + 600_000,
});

beforeEach(() => jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] }));
afterEach(() => jest.useRealTimers());

it('no process keeps a result from before an invalidation, in random interleavings with lost connections', async () => {
  let hits = 0;
  await fc.assert(
    fc.asyncProperty(steps, fc.nat(), async (run, seed) => {
      const world = new World(seed);
      // The subscriptions begin.
      await jest.advanceTimersByTimeAsync(1000);
      for (const step of run) {
        await jest.advanceTimersByTimeAsync(step.after);
        world.run(step);
      }
      world.heal();
      await jest.advanceTimersByTimeAsync(20_000);
      expect(await world.stale()).toEqual([]);
      hits += world.hits;
      jest.clearAllTimers();
    }),
    { numRuns: 150 },
  );
  expect(hits).toBeGreaterThan(150);
}, 120_000);
