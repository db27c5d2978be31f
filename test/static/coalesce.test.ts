import { AsyncResource } from 'node:async_hooks';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { createBreaker } from '../../src/static/cache/circuit-breaker.ts';
import { createLookups } from '../../src/static/cache/coalesce.ts';
import { createMemory, type Memory } from '../../src/static/cache/file-cache.ts';
import type { LookupContext } from '../../src/static/cache/revalidate.ts';
import type { Found } from '../../src/static/file/load.ts';
import type { Entry } from '../../src/static/file/loaded-file.ts';
import { represent } from '../../src/static/file/representation.ts';
import type { Exchange } from '../../src/static/respond/request-context.ts';

const turn = (): Promise<void> => new Promise((done) => setImmediate(done));

function entryOf(bytes: number, more: Partial<Entry> = {}): Entry {
  const identity = { dev: 1n, ino: 1n, size: BigInt(bytes), mtimeNs: 1n, ctimeNs: 1n };
  const facts = {
    coding: undefined,
    type: 'text/plain',
    size: bytes,
    cacheControl: undefined,
    vary: undefined,
    acceptRanges: true,
  };
  const plain = represent(
    facts,
    { path: '/', realPath: '/', identity, body: Buffer.alloc(bytes) },
    { tag: '"x"', modified: 0 },
  );
  return {
    kind: 'entry',
    dependencies: [],
    plain,
    coded: [],
    stat: undefined,
    bytes,
    young: false,
    changedAt: 0,
    ...more,
  };
}

function exchangeFor(memory: Memory, key: string): Exchange {
  const req = new IncomingMessage(new Socket());
  const res = new ServerResponse(req);
  return {
    req,
    res,
    next: () => {},
    scope: new AsyncResource('test'),
    slot: memory.slotOf(key),
    restarts: 0,
  };
}

/** Lookups whose loads are counted and end when the test says so. */
function controlled(window = 0) {
  const memory = createMemory({ maxBytes: 1000, maxEntries: 10 });
  const loads: { key: string; finish: (found: Found) => void; fail: (error: unknown) => void }[] = [];
  const concluded: { exchange: Exchange; error: unknown; found: Found | undefined }[] = [];
  const context: LookupContext = {
    load: (key) => new Promise((finish, fail) => loads.push({ key, finish, fail })),
    memory,
    isInPlace: async () => true,
    device: undefined,
    breaker: createBreaker(() => 0),
    window,
    kept: () => {},
  };
  const ask = createLookups(context, (exchange, error, found) => concluded.push({ exchange, error, found }));
  return { memory, loads, concluded, ask: (key: string) => ask(exchangeFor(memory, key)) };
}

describe('looks', () => {
  it('are shared by all who ask in one turn', async () => {
    const { ask, loads, concluded } = controlled();
    for (let i = 0; i < 1000; i++) ask('/a');
    expect(loads).toHaveLength(0);
    await turn();
    expect(loads).toHaveLength(1);
    loads[0]?.finish(entryOf(1));
    await turn();
    expect(concluded).toHaveLength(1000);
  });

  it('begin after everybody whom they serve has asked; who comes later shares the next', async () => {
    const { ask, loads, concluded } = controlled();
    ask('/a');
    await turn();
    for (let i = 0; i < 10; i++) ask('/a');
    await turn();
    expect(loads).toHaveLength(1);
    loads[0]?.finish({ kind: 'missing', why: 'none' });
    await turn();
    expect(concluded).toHaveLength(1);
    await turn();
    expect(loads).toHaveLength(2);
    loads[1]?.finish({ kind: 'missing', why: 'none' });
    await turn();
    expect(concluded).toHaveLength(11);
  });

  it('are bounded in number, and the rest have their turn', async () => {
    const { ask, loads, concluded } = controlled();
    for (let i = 0; i < 100; i++) ask(`/${i}`);
    await turn();
    const underWay = loads.length;
    expect(underWay).toBeLessThanOrEqual(16);
    for (let done = 0; done < 100; done++) {
      while (loads.length <= done) await turn();
      loads[done]?.finish({ kind: 'missing', why: 'none' });
    }
    while (concluded.length < 100) await turn();
    expect(new Set(loads.map(({ key }) => key)).size).toBe(100);
  });

  it('that fail tell everybody, and are not remembered', async () => {
    const { ask, loads, concluded, memory } = controlled();
    const error = Object.assign(new Error('out of descriptors'), { code: 'EMFILE' });
    ask('/a');
    ask('/a');
    await turn();
    loads[0]?.fail(error);
    await turn();
    expect(concluded.map((one) => one.error)).toEqual([error, error]);
    expect(memory.peek('/a')).toBeUndefined();
  });

  it('that end in a throwing handler still end for the others', async () => {
    const memory = createMemory({ maxBytes: 1000, maxEntries: 10 });
    const concluded: number[] = [];
    const rethrown: (() => void)[] = [];
    // For real, what is thrown there ends the process, as it should.
    const later = jest.spyOn(globalThis, 'queueMicrotask').mockImplementation((run) => rethrown.push(run));
    const context: LookupContext = {
      load: async () => entryOf(1),
      memory,
      isInPlace: async () => true,
      device: undefined,
      breaker: createBreaker(() => 0),
      window: 0,
      kept: () => {},
    };
    const ask = createLookups(context, (exchange) => {
      concluded.push(exchange.restarts);
      if (exchange.restarts === 0) throw new Error('from a handler');
    });
    for (let restarts = 0; restarts < 3; restarts++) ask({ ...exchangeFor(memory, '/a'), restarts });
    await turn();
    await turn();
    later.mockRestore();
    expect(concluded).toEqual([0, 1, 2]);
    expect(rethrown).toHaveLength(1);
    expect(rethrown[0]).toThrow('from a handler');
  });

  it('trust what was seen for the window, unless it has just changed or is young', async () => {
    for (const [more, trusted] of [
      [{}, true],
      [{ changedAt: Date.now() }, false],
      [{ young: true }, false],
    ] as const) {
      const { ask, loads, memory } = controlled(10_000);
      ask('/a');
      await turn();
      loads[0]?.finish(entryOf(1, more));
      await turn();
      expect((memory.peek('/a')?.trustedUntil ?? 0) > performance.now()).toBe(trusted);
    }
  });
});

describe('memory', () => {
  it('is bounded by bytes: what was used longer ago goes first', () => {
    const memory = createMemory({ maxBytes: 1000, maxEntries: 100 });
    for (let i = 0; i < 10; i++) memory.keep(memory.slotOf(`/${i}`), entryOf(100));
    for (const key of ['/0', '/1']) Object.assign(memory.slotOf(key), { used: true });
    memory.keep(memory.slotOf('/new'), entryOf(300));
    const left = Array.from({ length: 10 }, (_, i) => `/${i}`).filter(
      (key) => memory.peek(key) !== undefined,
    );
    expect(left).toEqual(['/0', '/1', '/5', '/6', '/7', '/8', '/9']);
    expect(memory.peek('/new')?.entry).toBeDefined();
  });

  it('is bounded by entries', () => {
    const memory = createMemory({ maxBytes: 1000, maxEntries: 3 });
    for (let i = 0; i < 10; i++) memory.keep(memory.slotOf(`/${i}`), entryOf(0));
    expect(Array.from({ length: 10 }, (_, i) => memory.peek(`/${i}`)).filter(Boolean)).toHaveLength(3);
  });

  it('holds nothing of paths that led nowhere', async () => {
    const { ask, loads, memory } = controlled();
    const hot = memory.slotOf('/hot');
    memory.keep(hot, entryOf(1000));
    for (let i = 0; i < 200; i++) ask(`/junk${i}`);
    for (let done = 0; done < 200; done++) {
      while (loads.length <= done) await turn();
      loads[done]?.finish({ kind: 'missing', why: 'none' });
    }
    await turn();
    for (let i = 0; i < 200; i++) expect(memory.peek(`/junk${i}`)).toBeUndefined();
    expect(memory.peek('/hot')).toBe(hot);
    expect(hot.entry).toBeDefined();
  });
});
