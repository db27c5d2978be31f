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
  readonly violations: string[] = [];
  hits = 0;
  acknowledged = 0;
  readonly #database: number[] = Array(KEYS).fill(0);
  /** The newest version of each key whose invalidation was acknowledged. */
  readonly #acknowledged: number[] = Array(KEYS).fill(0);
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

  async #read(process: number, key: number): Promise<void> {
    const store = this.#stores[process] as CacheStore;
    const needed = this.#acknowledged[key] as number;
    const { entry, version } = await store.get(`${key}`);
    if (entry !== undefined) {
      this.hits++;
      if (Number(entry.body) < needed)
        this.violations.push(`process ${process} read ${entry.body} of key ${key} after ${needed}`);
      return;
    }
    const value = this.#database[key];
    await new Promise((resolve) => setTimeout(resolve, this.#random() ** 2 * 500));
    if (version !== undefined) await store.set(`${key}`, entryOf(`${value}`, `tag-${key}`), version);
  }

  async #write(process: number, key: number): Promise<void> {
    const value = (this.#database[key] as number) + 1;
    this.#database[key] = value;
    await this.#stores[process]?.invalidate([`tag-${key}`]);
    this.acknowledged++;
    this.#acknowledged[key] = Math.max(this.#acknowledged[key] as number, value);
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

it('no response cache returns a value that is older than an acknowledged invalidation, in random interleavings', async () => {
  let hits = 0;
  let acknowledged = 0;
  await fc.assert(
    fc.asyncProperty(steps, fc.nat(), async (run, seed) => {
      const world = new World(seed);
      // Leases and subscriptions begin.
      await jest.advanceTimersByTimeAsync(1000);
      for (const step of run) {
        await jest.advanceTimersByTimeAsync(step.after);
        world.run(step);
      }
      world.heal();
      await jest.advanceTimersByTimeAsync(20_000);
      expect(world.violations).toEqual([]);
      // Every invalidation is acknowledged when the connections are open again.
      expect(world.acknowledged).toBe(run.filter((step) => step.do === 'write').length);
      hits += world.hits;
      acknowledged += world.acknowledged;
      jest.clearAllTimers();
    }),
    { numRuns: 150 },
  );
  expect(hits).toBeGreaterThan(150);
  expect(acknowledged).toBeGreaterThan(500);
}, 120_000);
