/** @tags node-lines */
import { AsyncResource } from 'node:async_hooks';
import type { LoadResult } from '../../src/static/cache.ts';
import { budgetFor, type CacheEntry, FileCache, type Waiter } from '../../src/static/cache.ts';
import { type CheckContext, CircuitBreaker, Coalescer } from '../../src/static/check.ts';
import { loadedFile } from './loaded-file.ts';

const turn = (): Promise<void> => new Promise((done) => setImmediate(done));

const NOT_FOUND: LoadResult = { kind: 'not-found', reason: 'no such file' };

const createCache = (): FileCache => new FileCache(budgetFor({ maxBytes: 1 << 20 }));

function waiterFor(entry: CacheEntry, onChecked: Waiter['onChecked']): Waiter {
  return { entry, asyncScope: new AsyncResource('test'), onChecked };
}

function checkContext(cache: FileCache, load: CheckContext['load'], revalidateAfter = 0): CheckContext {
  return {
    cache,
    load,
    stillResolves: async () => true,
    files: { allowsSync: () => false, isUnchangedSync: () => false, isUnchanged: async () => true },
    maxRunning: 16,
    breaker: new CircuitBreaker(() => 0),
    revalidateAfter,
    onCached: () => {},
  };
}

/** A coalescer whose loads are counted and finish when the test says so. */
function createControlled(revalidateAfter = 0) {
  const cache = createCache();
  const loads: {
    urlPath: string;
    finish: (result: LoadResult) => void;
    fail: (error: unknown) => void;
  }[] = [];
  const checked: { error: unknown; result: LoadResult | undefined }[] = [];
  const load: CheckContext['load'] = (urlPath) =>
    new Promise((finish, fail) => loads.push({ urlPath, finish, fail }));
  const coalescer = new Coalescer(checkContext(cache, load, revalidateAfter));
  const check = (urlPath: string): void =>
    coalescer.check(
      waiterFor(cache.getOrCreate(urlPath), (error, result) => checked.push({ error, result })),
    );
  return { cache, loads, checked, check };
}

describe('Coalescer', () => {
  it('Coalescer loads a file once for all requests of one iteration of the event loop', async () => {
    const { check, loads, checked } = createControlled();
    for (let i = 0; i < 1000; i++) check('/a');
    expect(loads).toHaveLength(0);
    await turn();
    expect(loads).toHaveLength(1);
    loads[0]?.finish(loadedFile(1));
    await turn();
    expect(checked).toHaveLength(1000);
  });

  it('Coalescer starts another check for requests that arrive during a check', async () => {
    const { check, loads, checked } = createControlled();
    check('/a');
    await turn();
    for (let i = 0; i < 10; i++) check('/a');
    await turn();
    expect(loads).toHaveLength(1);
    loads[0]?.finish(NOT_FOUND);
    await turn();
    expect(checked).toHaveLength(1);
    await turn();
    expect(loads).toHaveLength(2);
    loads[1]?.finish(NOT_FOUND);
    await turn();
    expect(checked).toHaveLength(11);
  });

  it('Coalescer checks an entry that a response asks for in the same turn', async () => {
    const cache = createCache();
    const files = { allowsSync: () => true, isUnchangedSync: () => true, isUnchanged: async () => true };
    const coalescer = new Coalescer({ ...checkContext(cache, async () => loadedFile(1)), files });
    const checked: string[] = [];
    const check = (path: string, next?: () => void): void => {
      const onChecked = (): void => {
        checked.push(path);
        next?.();
      };
      coalescer.check(waiterFor(cache.getOrCreate(path), onChecked));
    };
    check('/a');
    check('/b');
    while (checked.length < 2) await turn();
    check('/a', () => check('/b'));
    await turn();
    expect(checked.slice(2)).toEqual(['/a', '/b']);
  });

  it('Coalescer limits simultaneous checks in the thread pool and runs the others later', async () => {
    const { check, loads, checked } = createControlled();
    for (let i = 0; i < 100; i++) check(`/${i}`);
    await turn();
    expect(loads.length).toBeLessThanOrEqual(16);
    for (let done = 0; done < 100; done++) {
      while (loads.length <= done) await turn();
      loads[done]?.finish(NOT_FOUND);
    }
    while (checked.length < 100) await turn();
    expect(new Set(loads.map(({ urlPath }) => urlPath)).size).toBe(100);
  });

  it('Coalescer reports a failed check to all waiting requests and caches nothing', async () => {
    const { check, loads, checked, cache } = createControlled();
    const error = Object.assign(new Error('out of descriptors'), { code: 'EMFILE' });
    check('/a');
    check('/a');
    await turn();
    loads[0]?.fail(error);
    await turn();
    expect(checked.map((one) => one.error)).toEqual([error, error]);
    expect(cache.get('/a')).toBeUndefined();
  });

  it('Coalescer continues the other requests when the handler of one request throws', async () => {
    const cache = createCache();
    const continued: number[] = [];
    const rethrown: (() => void)[] = [];
    // In an application the exception ends the process, as an uncaught exception should.
    const later = jest.spyOn(globalThis, 'queueMicrotask').mockImplementation((run) => rethrown.push(run));
    const coalescer = new Coalescer(checkContext(cache, async () => loadedFile(1)));
    for (let index = 0; index < 3; index++) {
      const onChecked = (): void => {
        continued.push(index);
        if (index === 0) throw new Error('from a handler');
      };
      coalescer.check(waiterFor(cache.getOrCreate('/a'), onChecked));
    }
    await turn();
    await turn();
    later.mockRestore();
    expect(continued).toEqual([0, 1, 2]);
    expect(rethrown).toHaveLength(1);
    expect(rethrown[0]).toThrow('from a handler');
  });

  it('Coalescer marks a file as fresh for revalidateAfter, except if it has just changed', async () => {
    for (const [more, isFresh] of [
      [{}, true],
      [{ changedAt: Date.now() }, false],
      [{ isRacilyClean: true }, false],
    ] as const) {
      const { check, loads, cache } = createControlled(10_000);
      check('/a');
      await turn();
      loads[0]?.finish(loadedFile(1, more));
      await turn();
      expect((cache.get('/a')?.freshUntil ?? 0) > performance.now()).toBe(isFresh);
    }
  });
});

it('FileCache stores nothing for paths that lead to no file', async () => {
  const { check, loads, cache } = createControlled();
  const hot = cache.getOrCreate('/hot');
  cache.set(hot, loadedFile(1000));
  for (let i = 0; i < 200; i++) check(`/junk${i}`);
  for (let done = 0; done < 200; done++) {
    while (loads.length <= done) await turn();
    loads[done]?.finish(NOT_FOUND);
  }
  await turn();
  for (let i = 0; i < 200; i++) expect(cache.get(`/junk${i}`)).toBeUndefined();
  expect(cache.get('/hot')).toBe(hot);
  expect(hot.file).toBeDefined();
});
