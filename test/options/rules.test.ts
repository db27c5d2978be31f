/** @tags once */
import {
  bytes,
  count,
  delay,
  duration,
  flag,
  type OptionScope,
  oneOf,
  optionalFunction,
  positive,
  resolveOptions,
  rule,
} from '../../src/options/rules.ts';

const rules = {
  html: flag(false),
  etag: oneOf('content', 'stat', false),
  maxAge: count(0, 'milliseconds'),
  maxFiles: positive(1),
  accept: optionalFunction(),
  timeout: delay(1000),
};
const owner: OptionScope = { name: 'staticFiles', page: 'static-files' };
const settled = (given: unknown, within?: string) => () =>
  resolveOptions(within === undefined ? owner : { ...owner, within }, given, rules);

const measures = {
  age: duration(1, { from: 0 }),
  timeout: delay(1),
  size: bytes(1),
  memory: bytes(1, { to: Number.POSITIVE_INFINITY }),
  none: bytes(undefined, { from: 0 }),
};
const measured = (given: unknown) => resolveOptions(owner, given, measures);

describe('options with units', () => {
  it.each([
    [{ age: '250ms' }, { age: 250 }],
    [{ age: '1.5s' }, { age: 1500 }],
    [{ age: '10 m' }, { age: 600_000 }],
    [{ age: '2H' }, { age: 7_200_000 }],
    [
      { age: '7d', timeout: '5s' },
      { age: 604_800_000, timeout: 5000 },
    ],
    [
      { age: 0, size: 7 },
      { age: 0, size: 7 },
    ],
    [{ size: '512b' }, { size: 512 }],
    [{ size: '64kb' }, { size: 65_536 }],
    [{ size: '1.5MB' }, { size: 1_572_864 }],
    [
      { size: '1gb', none: '0b' },
      { size: 1_073_741_824, none: 0 },
    ],
    [{ memory: Number.POSITIVE_INFINITY }, { memory: Number.POSITIVE_INFINITY }],
    [{}, { age: 1, timeout: 1, size: 1, memory: 1, none: undefined }],
  ])('resolveOptions turns %j into numbers', (given, expected) => {
    expect(measured(given)).toMatchObject(expected);
  });

  it.each([
    [{ age: '5' }, /"age" is "5"; .*'5s' \(ms, s, m, h, d\)/],
    [{ age: '' }, /"age"/],
    [{ age: '-5s' }, /"age"/],
    [{ age: '5mb' }, /"age"/],
    [{ age: '1e3s' }, /"age"/],
    [{ age: Number.POSITIVE_INFINITY }, /"age"/],
    [{ timeout: '30d' }, /"timeout" is "30d"; .*from 1 to 2147483647/],
    [{ timeout: '0s' }, /"timeout"/],
    [{ size: '5 MiB' }, /"size" is "5 MiB"; .*'5mb' \(b, kb, mb, gb\)/],
    [{ size: '5s' }, /"size"/],
    [{ size: '9999999999gb' }, /"size"/],
    [{ memory: 'constructor' }, /Infinity for no limit/],
  ])('resolveOptions rejects %j', (given, message) => {
    expect(() => measured(given)).toThrow(message);
  });
});

describe('options', () => {
  it('resolveOptions fills in defaults, also for undefined', () => {
    const filled = { html: true, etag: 'content', maxAge: 0, maxFiles: 1, accept: undefined, timeout: 1000 };
    expect(settled({ html: true, etag: undefined })()).toEqual(filled);
    expect(settled(undefined)()).toEqual({ ...filled, html: false });
  });

  it('resolveOptions rejects an unknown option and suggests the closest name', () => {
    expect(settled({ htlm: true })).toThrow(/unknown option "htlm".*"html"/);
    expect(settled({ htlm: true }, 'cache')).toThrow(/"cache.htlm".*"cache.html"/);
    expect(settled({ HTML: true })).toThrow(/"html"/);
    expect(settled({ whatever: true })).toThrow(/html, etag, maxAge, maxFiles, accept, timeout/);
  });

  it.each([
    { html: 'yes' },
    { html: null },
    { etag: 'weak' },
    { maxAge: -1 },
    { maxFiles: 0 },
    { maxFiles: 1.5 },
    { timeout: 0 },
    { timeout: 2 ** 31 },
    { accept: 'image' },
  ])('resolveOptions rejects %j and names the option', (given) => {
    expect(settled(given)).toThrow(
      new RegExp(`^staticFiles: option "${Object.keys(given)[0]}" is .*; accepted: `),
    );
    expect(settled(given, 'cache')).toThrow(`"cache.${Object.keys(given)[0]}"`);
  });

  it.each(['html', ['html'], null])('resolveOptions rejects the options %j', (given) => {
    expect(settled(given)).toThrow(/argument "options" is .*; accepted: an object/);
  });

  it('resolveOptions throws a TypeError with the code ERR_OPTION and a link to the documentation', () => {
    expect(settled({ html: 1 })).toThrow(TypeError);
    expect(settled({ html: 1 })).toThrow(expect.objectContaining({ code: 'ERR_OPTION' }));
    expect(settled({ html: 1 })).toThrow(/\(see https:\/\/.*\/docs\/static-files\.md\)$/);
  });

  it('resolveOptions ignores properties of the prototype', () => {
    expect(settled({ constructor: 1 })).toThrow(/unknown option "constructor"/);
  });

  it('formatValue shows a value of any type in one short line', () => {
    const round: Record<string, unknown> = {};
    round['self'] = round;
    const shown = (value: unknown): string => {
      try {
        resolveOptions(owner, { only: value }, { only: rule(0, () => false, 'nothing') });
        return '';
      } catch (error) {
        return (error as Error).message.replace(/^.* is (.*); accepted.*$/s, '$1');
      }
    };
    expect(
      [round, Symbol('s'), 1n, Number.NaN, Promise.resolve(1), () => 1, 'x'.repeat(100)].map(shown),
    ).toEqual([
      '[object Object]',
      'Symbol(s)',
      '1',
      'NaN',
      'a promise',
      'a function',
      `"${'x'.repeat(76)}...`,
    ]);
    // Clients may send it in place of a file; a slow search for a password would block the process for minutes.
    expect(shown('://:'.repeat(200_000))).toBe(`"${'://:'.repeat(19)}...`);
  });
});
