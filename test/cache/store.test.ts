/** @tags graphql */
import { stat } from 'node:fs/promises';
import { createProcessStore, FailsafeStore } from '../../src/cache/store.ts';
import type { CacheEntry, CacheLookup, CacheStore } from '../../types/response-cache.ts';
import { runInProcess } from '../engine/run-in-process.ts';

const LOOKUP: CacheLookup = { entry: undefined, version: 1 };
const ENTRY: CacheEntry = {
  body: '1',
  policy: { maxAge: 1, sharedMaxAge: 1, scope: 'PUBLIC', vary: [], tags: [] },
  storedAt: 0,
  lifetime: 1,
  expires: 1,
};

const never = new Promise<never>(() => undefined);
let errors: unknown[];
let calls: number;

const guard = (store: Partial<CacheStore>): FailsafeStore =>
  new FailsafeStore({ get: () => LOOKUP, set: () => true, invalidate: () => undefined, ...store }, (error) =>
    errors.push(error),
  );

beforeEach(() => {
  errors = [];
  calls = 0;
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
});
afterEach(() => jest.useRealTimers());

/** Whether a promise is settled 50 ms later, and was not 1 ms before. */
async function settlesAfterFifty(result: unknown): Promise<boolean> {
  let settled = false;
  void Promise.resolve(result).then(() => {
    settled = true;
  });
  await jest.advanceTimersByTimeAsync(49);
  if (settled) return false;
  await jest.advanceTimersByTimeAsync(1);
  return settled;
}

describe('FailsafeStore', () => {
  it('a request waits 50 ms for a silent store, and then executes', async () => {
    const store = guard({ get: () => never });
    const result = store.get('k');
    expect(await settlesAfterFifty(result)).toBe(true);
    expect(await result).toEqual({ entry: undefined, version: undefined });
    expect(errors.map(String)).toEqual([
      'Error: the store did not reply within 50 ms; requests are executed until it replies',
    ]);
  });

  it('a request waits 50 ms for a silent store also when it stores a result or invalidates tags', async () => {
    const store = guard({ set: () => never, invalidate: () => never });
    expect(await settlesAfterFifty(store.set('k', ENTRY, 1))).toBe(true);
    expect(await settlesAfterFifty(store.invalidateSoon(['a']))).toBe(true);
  });

  it('a request waits for the code of the memory store, whose import may be slower, and reports nothing', () => {
    const text = runInProcess('test/cache/first-lookup.ts');
    expect(JSON.parse(text)).toEqual({ lookup: { version: 0 }, errors: [] });
  });

  it('requests do not wait for a silent store again, except one per second', async () => {
    const store = guard({
      get() {
        calls++;
        return never;
      },
    });
    await settlesAfterFifty(store.get('k'));
    for (let count = 0; count < 100; count++) {
      expect(store.get('k')).toEqual({ entry: undefined, version: undefined });
      expect(store.set('k', ENTRY, 1)).toBe(false);
    }
    expect(calls).toBe(1);
    await jest.advanceTimersByTimeAsync(1000);
    const probes = [1, 2, 3].map(() => store.get('k'));
    expect(probes.filter((probe) => probe instanceof Promise)).toHaveLength(1);
  });

  it('a late reply of the store ends its suspension', async () => {
    let reply: (lookup: CacheLookup) => void = () => undefined;
    const store = guard({
      get: () =>
        new Promise((resolve) => {
          reply = resolve;
        }),
    });
    await settlesAfterFifty(store.get('k'));
    reply(LOOKUP);
    await jest.advanceTimersByTimeAsync(0);
    const next = store.get('k');
    reply(LOOKUP);
    expect(await next).toBe(LOOKUP);
  });

  it('a reply that arrives while the event loop is blocked for longer than 50 ms is in time', async () => {
    jest.useRealTimers();
    const reply = async <T>(value: T): Promise<T> => {
      await stat(__filename);
      return value;
    };
    const store = guard({ get: () => reply(LOOKUP), set: () => reply(true) });
    const results = [store.get('k'), store.set('k', ENTRY, 1)];
    const end = performance.now() + 200;
    while (performance.now() < end);
    expect(await Promise.all(results)).toEqual([LOOKUP, true]);
  });

  it.each([
    ['rejects', () => Promise.reject(new Error('down'))],
    [
      'throws',
      () => {
        throw new Error('down');
      },
    ],
  ])('an error of a store that %s is reported, and the request executes', async (_name, fail) => {
    const store = guard({ get: fail, set: fail, invalidate: fail });
    expect(await store.get('k')).toEqual({ entry: undefined, version: undefined });
    expect(await store.set('k', ENTRY, 1)).toBe(false);
    await store.invalidateSoon(['a']);
    expect(errors.map(String)).toEqual(['Error: down', 'Error: down', 'Error: down']);
    await expect(store.invalidate(['a'])).rejects.toThrow('down');
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'x'],
    ['an entry that is null', { entry: null, version: 1 }],
    ['an entry without a policy', { entry: { ...ENTRY, policy: undefined }, version: 1 }],
    ['an entry without a body', { entry: { ...ENTRY, body: undefined }, version: 1 }],
    ['an entry with a body of another type', { entry: { ...ENTRY, body: { a: 1 } }, version: 1 }],
    ['an entry without a time', { entry: { ...ENTRY, storedAt: 'now' }, version: 1 }],
    ['an entry without tags', { entry: { ...ENTRY, policy: { ...ENTRY.policy, tags: null } }, version: 1 }],
    [
      'an entry with other tags',
      { entry: { ...ENTRY, policy: { ...ENTRY.policy, tags: [{}] } }, version: 1 },
    ],
  ])('a store that returns %s counts as unavailable, and the error is reported', async (_name, value) => {
    const get = (): CacheLookup => value as CacheLookup;
    expect(guard({ get }).get('k')).toEqual({ entry: undefined, version: undefined });
    expect(await guard({ get: async () => get() }).get('k')).toEqual({
      entry: undefined,
      version: undefined,
    });
    expect(errors.map(String)).toEqual(Array(2).fill(expect.stringContaining('"responseCache.store"')));
  });

  it('a result counts as stored only if the store has returned true', async () => {
    for (const value of [undefined, 'OK', 1] as unknown[]) {
      const set = (): boolean => value as boolean;
      expect(guard({ set }).set('k', ENTRY, 1)).toBe(false);
      expect(await guard({ set: async () => set() }).set('k', ENTRY, 1)).toBe(false);
    }
  });

  it('FailsafeStore accepts promises of other libraries that lack catch or throw', async () => {
    const thenable = (then: () => void): Promise<never> => Object.assign(Object.create(null), { then });
    const fails = (): Promise<never> =>
      thenable(() => {
        throw new Error('down');
      });
    const store = guard({ get: fails, set: fails, invalidate: fails });
    expect(await store.get('k')).toEqual({ entry: undefined, version: undefined });
    expect(await store.set('k', ENTRY, 1)).toBe(false);
    await store.invalidateSoon(['a']);
    expect(errors.map(String)).toEqual(['Error: down', 'Error: down', 'Error: down']);
  });
});

describe('a store in the memory of the process with a pubsub of another library', () => {
  const subscribe = async function* (): AsyncGenerator<unknown> {
    yield await never;
  };

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('down');
      },
    ],
    ['returns no promise', () => undefined],
    ['rejects', () => Promise.reject(new Error('down'))],
  ])(
    'publish that %s makes the store unavailable and fails neither requests nor timers',
    async (_, publish) => {
      const published: unknown[] = [];
      const pubsub = {
        publish: (topic: string): Promise<void> => {
          published.push(topic);
          return publish() as Promise<void>;
        },
        subscribe,
      };
      const store = createProcessStore(1000, pubsub);
      for (let second = 0; second < 3; second++) {
        expect(store.get('k')).toEqual({ entry: undefined, version: undefined });
        await jest.advanceTimersByTimeAsync(1000);
      }
      expect(published.length).toBeGreaterThan(2);
    },
  );
});
