/** @tags node-lines */
import fc from 'fast-check';
import { assertJsonWithinLimits } from '../../src/http/body.ts';

/** Short texts are not checked. */
const long = (text: string): Buffer => Buffer.from(text + ' '.repeat(16 * 1024));
const passes = (text: string | Buffer, most: number): boolean => {
  try {
    assertJsonWithinLimits(typeof text === 'string' ? long(text) : text, most);
    return true;
  } catch (error) {
    expect(error).toMatchObject({ status: 400, code: 'LIMIT_JSON' });
    return false;
  }
};
const membersOf = (value: unknown): number => {
  if (typeof value !== 'object' || value === null) return 0;
  const members: unknown[] = Array.isArray(value) ? value : Object.values(value);
  return members.reduce<number>((sum, member) => sum + 1 + membersOf(member), 0);
};

describe('the values of a JSON text', () => {
  it('assertJsonWithinLimits counts the values of the parsed JSON, whatever its strings contain', () => {
    const text = fc.string({ unit: fc.constantFrom('"', '\\', '[', '{', ',', ']', '}', ' ', 'a', 'é') });
    const json = fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' });
    const value = fc.oneof(json, fc.dictionary(text, fc.array(text)), fc.array(fc.dictionary(text, json)));
    fc.assert(
      fc.property(value, fc.constantFrom(undefined, 1, '\t'), (given, indent) => {
        const written = JSON.stringify(given, undefined, indent);
        const members = membersOf(JSON.parse(written));
        expect(passes(written, members)).toBe(true);
        if (members > 0) expect(passes(written, members - 1)).toBe(false);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ['lists', '['.repeat(220), '['.repeat(221)],
    ['objects', '{"a":'.repeat(220), '{"a":'.repeat(221)],
    ['both', '[{"a":'.repeat(110), `[${'{"a":['.repeat(110)}`],
  ])('assertJsonWithinLimits limits the depth of %s', (_what, within, over) => {
    expect([passes(within, Infinity), passes(over, Infinity)]).toEqual([true, false]);
  });

  it.each(['"', '"\\', '"\\"', '[1,"', ']]]]', ',,,', '\\"[', ''])(
    'assertJsonWithinLimits accepts truncated or invalid JSON: %s',
    (text) => {
      expect(passes(text, 100)).toBe(true);
      expect(passes(Buffer.concat([Buffer.alloc(17_000, ' '), Buffer.from(text)]), 100)).toBe(true);
    },
  );

  it('assertJsonWithinLimits does not count the values of a short text', () => {
    expect(passes(Buffer.from('['.repeat(16 * 1024)), 1)).toBe(true);
  });
});
