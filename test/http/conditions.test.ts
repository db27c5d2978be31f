/** @tags node-lines */
import { constants } from 'node:os';
import {
  formatHttpDate,
  listMatchesStrongly,
  listMatchesWeakly,
  parseHttpDate,
  parseRanges,
} from '../../src/http/conditions.ts';
import { parseAcceptEncoding } from '../../src/http/negotiation.ts';
import { BufferPool } from '../../src/static/body.ts';
import { isStaleError } from '../../src/static/root.ts';
import { isRacilyClean, sameContent } from '../../src/static/version.ts';
import { storageError } from '../../src/uploads/receipt.ts';

describe('entity tag lists', () => {
  it.each([
    ['"a"', '"a"', true, true],
    ['W/"a"', '"a"', false, true],
    ['"a"', 'W/"a"', false, true],
    ['"b", "a"', '"a"', true, true],
    ['"b","a"', '"a"', true, true],
    ['"x,"a""', '"a"', false, false],
    ['"a,b"', '"a,b"', true, true],
    ['"a,b"', '"a"', false, false],
    ['a', '"a"', false, false],
    ['', '"a"', false, false],
    ['W/', '"a"', false, false],
    ['"a', '"a"', false, false],
  ])('the list %s is compared with the tag %s', (list, tag, strongly, weakly) => {
    expect(listMatchesStrongly(list, tag)).toBe(strongly);
    expect(listMatchesWeakly(list, tag)).toBe(weakly);
  });
});

describe('dates', () => {
  it.each([
    ['Sun, 06 Nov 1994 08:49:37 GMT', 784111777000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 784111777000],
    ['Sun Nov  6 08:49:37 1994', 784111777000],
    ['Sun Nov 16 08:49:37 1994', 784975777000],
    ['Sun, 06 Nov 1994 08:49:37', undefined],
    ['Sun, 06 Nov 1994 25:49:37 GMT', undefined],
    ['Sun, 32 Nov 1994 08:49:37 GMT', undefined],
    ['Sun, 06 Nox 1994 08:49:37 GMT', undefined],
    ['Sun, 06 ovD 1994 08:49:37 GMT', undefined],
    ['784111777000', undefined],
    ['now', undefined],
    ['', undefined],
  ])('parseHttpDate parses %j as %p', (text, time) => expect(parseHttpDate(text)).toBe(time));

  it('formatHttpDate writes dates in the preferred format, also before 1970', () => {
    const texts = [784111777000, 784111777000, -1000, 784111777000, 0].map(formatHttpDate);
    expect(texts).toEqual([
      'Sun, 06 Nov 1994 08:49:37 GMT',
      'Sun, 06 Nov 1994 08:49:37 GMT',
      'Wed, 31 Dec 1969 23:59:59 GMT',
      'Sun, 06 Nov 1994 08:49:37 GMT',
      'Thu, 01 Jan 1970 00:00:00 GMT',
    ]);
  });
});

describe('ranges', () => {
  it('parseRanges keeps the requested order of ranges that do not touch', () => {
    expect(parseRanges('bytes=8-9,0-1,4-5', 10)).toEqual([
      { start: 8, end: 9 },
      { start: 0, end: 1 },
      { start: 4, end: 5 },
    ]);
  });

  it('parseRanges merges adjacent and overlapping ranges', () => {
    expect(parseRanges('bytes=0-1,4-5,8-9,2-7', 10)).toEqual([{ start: 0, end: 9 }]);
  });

  it('parseRanges returns ranges without overlap that cover exactly the requested bytes', () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 48271) % 2147483647;
      return seed % below;
    };
    for (let round = 0; round < 300; round++) {
      const requested = Array.from({ length: 1 + random(16) }, () => {
        const start = random(50);
        return [start, start + random(10)] as const;
      });
      const ranges = parseRanges(`bytes=${requested.map(([a, b]) => `${a}-${b}`).join(', ')}`, 40) ?? [];
      const covered = ranges.flatMap(({ start, end }) =>
        Array.from({ length: end - start + 1 }, (_, i) => start + i),
      );
      const wanted = new Set(
        requested.flatMap(([a, b]) => Array.from({ length: b - a + 1 }, (_, i) => a + i)),
      );
      expect(covered).toHaveLength(new Set(covered).size);
      expect(new Set(covered)).toEqual(new Set([...wanted].filter((byte) => byte < 40)));
    }
  });
});

describe('Accept-Encoding', () => {
  it.each([
    [undefined, { br: 0, identity: 1 }],
    ['', { br: 0, identity: 0.0001 }],
    ['br', { br: 1, gzip: 0, identity: 0.0001 }],
    ['BR;Q=0.5', { br: 0.5 }],
    ['br ; q=0.5', { br: 0.5 }],
    ['br;q=0.5555', { br: 0 }],
    ['br;q=2', { br: 0 }],
    ['*;q=0', { br: 0, identity: 0 }],
    ['*;q=0.3, gzip', { br: 0.3, gzip: 1, identity: 0.3 }],
    ['identity;q=0', { identity: 0, br: 0 }],
    [',, ,', { identity: 0.0001 }],
  ] as [string | undefined, Record<string, number>][])(
    'parseAcceptEncoding reads the weights of %j',
    (header, weights) => {
      const preference = parseAcceptEncoding(header);
      for (const [coding, weight] of Object.entries(weights)) expect(preference(coding)).toBe(weight);
    },
  );
});

describe('racily clean files', () => {
  it('isRacilyClean is true while another write could leave the timestamps unchanged', () => {
    const at = (ms: number) => ({
      dev: 1n,
      ino: 1n,
      size: 1n,
      mtimeNs: 1n,
      ctimeNs: BigInt(ms) * 1_000_000n + 1n,
    });
    expect(isRacilyClean(at(1000), 1010)).toBe(true);
    expect(isRacilyClean(at(1000), 1100)).toBe(false);
    // The clock of a network drive is ahead.
    expect(isRacilyClean(at(5000), 1000)).toBe(false);
    // The file system stores whole seconds.
    expect(isRacilyClean({ ...at(1000), ctimeNs: 1_000_000_000n }, 2500)).toBe(true);
    expect(isRacilyClean({ ...at(1000), ctimeNs: 1_000_000_000n }, 3500)).toBe(false);
  });
});

describe('sameContent', () => {
  const then = { dev: 1n, ino: 1n, size: 1n, mtimeNs: 1n, ctimeNs: 1n, nlink: 1n };

  it.each([
    ['unchanged stat fields', {}, {}, true],
    ['another size', {}, { size: 2n }, false],
    ['another mtime', {}, { mtimeNs: 2n, ctimeNs: 2n }, false],
    ['another ctime and a restored mtime', {}, { ctimeNs: 2n }, false],
    ['a removed name', {}, { ctimeNs: 2n, nlink: 0n }, true],
    ['a name removed just before', { nlink: 0n }, { ctimeNs: 2n, nlink: 0n }, true],
    ['a write after the name was removed', { nlink: 0n }, { mtimeNs: 2n, ctimeNs: 2n, nlink: 0n }, false],
  ])('sameContent compares files with %s', (_what, before, after, same) => {
    expect(sameContent({ ...then, ...before }, { ...then, ...after })).toBe(same);
  });
});

describe('BufferPool', () => {
  it('BufferPool stays within its capacity, then allocates small buffers, and reuses released ones', () => {
    const capacity = 8 << 20;
    const buffers = new BufferPool(capacity);
    const acquired = Array.from({ length: 100 }, () => buffers.acquire());
    const small = acquired.filter(({ length }) => length === 64 * 1024);
    expect(
      acquired.reduce((sum, { length }) => sum + length, 0) - small.length * 64 * 1024,
    ).toBeLessThanOrEqual(capacity);
    expect(small.length).toBeGreaterThan(0);
    for (const buffer of acquired) buffers.release(buffer);
    expect(acquired).toContain(buffers.acquire());
  });

  it('BufferPool reuses all buffers while a transfer runs, and keeps a quarter of its capacity afterwards', () => {
    const MIB = 1 << 20;
    const buffers = new BufferPool(32 * MIB);
    const acquire = (count: number): Buffer[] => Array.from({ length: count }, () => buffers.acquire());
    const bytesOf = (list: readonly Buffer[]): number => list.reduce((sum, { length }) => sum + length, 0);
    const running = buffers.acquire();
    const first = acquire(30);
    for (const buffer of first) buffers.release(buffer);
    const second = acquire(30);
    expect(second.every((buffer) => first.includes(buffer))).toBe(true);
    for (const buffer of [...second, running]) buffers.release(buffer);
    const third = acquire(30);
    const reused = third.filter((buffer) => buffer === running || first.includes(buffer));
    expect(bytesOf(reused)).toBe(8 * MIB);
  });
});

it('errors of the system that Node has no names for are recognized by their numbers', () => {
  const errorOf = (errno: number): Error => {
    const code = `Unknown system error ${errno}`;
    return Object.assign(new Error(`${code}: ${code}, open '/a'`), { errno, code, syscall: 'open' });
  };
  const { EDQUOT, ESTALE } = constants.errno;
  expect(isStaleError(errorOf(-ESTALE))).toBe(true);
  expect(isStaleError(errorOf(-EDQUOT))).toBe(false);
  expect(storageError(errorOf(-EDQUOT))).toMatchObject({ status: 507 });
  expect(storageError(errorOf(-ESTALE))).not.toHaveProperty('status');
});
