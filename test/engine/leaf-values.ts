import { type GraphQLOutputType, isEnumType } from 'graphql';

/** Lengths of strings that reach the end of the engine's working buffer, which has 8 KiB at first. */
const EDGE = 8192;

const TEXTS = [
  '',
  'plain',
  'say "hi"\\',
  'snow ☃',
  'line\nbreak',
  '\ud800',
  'low \udc00 first',
  'x'.repeat(230),
  `${'y'.repeat(230)}"`,
  `${'z'.repeat(45)}\u{1f600}`,
  '\u0000\u001f\u007f\u0080\u2028\u2029',
];
const ENDINGS = ['', '"', '\\', '\n', 'é', '☃', '\u{1f600}', '\ud800', '\udc00'];

function longText(kind: number): string {
  const ending = ENDINGS[kind % ENDINGS.length] as string;
  const filling = ENDINGS[(kind >>> 8) % ENDINGS.length] as string;
  const length = EDGE * (1 + (kind % 3)) - 60 + (kind % 80);
  const text = 'long text '.repeat(length / 10) + ending;
  return kind % 5 === 0 ? text.replaceAll('t', filling) : text;
}

/** The internal values of enum members. */
export const OPAQUE: object = { opaque: true };
const MEMBERS = [1, 'g', 'BLUE', OPAQUE, Number.NaN];

const STRANGE: readonly unknown[] = [
  {},
  [],
  Number.NaN,
  'text',
  2 ** 40,
  true,
  Symbol('s'),
  'explode',
  'nothing',
  -0,
  Number.NEGATIVE_INFINITY,
  12n,
  2n ** 70n,
  { valueOf: () => 5 },
  { valueOf: () => 'five', toString: () => 'text' },
  { toJSON: () => 'as JSON' },
  new Date(0),
  () => 'called',
  '',
  ' 7 ',
];

const INTS = [0, 1, -1, 2147483647, -2147483648, '12', 7.0, true, -0];
const FLOATS = [0, 1.5, -0, 1e21, 1e-7, '2.5', 3, 5e-324, 19.99, -0.05, 123456.789, false];

/** The value of a field or item of a leaf type. */
export function leafValue(
  type: GraphQLOutputType,
  kind: number,
  how: { strange: boolean; long: boolean },
): unknown {
  const pick = (values: readonly unknown[]): unknown => values[kind % values.length];
  const name = String(type);
  if (how.strange) return pick(STRANGE);
  if (isEnumType(type)) return pick(MEMBERS);
  if (name === 'Int') return pick(INTS);
  if (name === 'Float') return pick(FLOATS);
  if (name === 'Boolean') return pick([true, false, 1, 0]);
  if (name === 'ID') return pick(['id', 12, -3, '☃']);
  if (how.long) return longText(kind);
  if (name === 'Any') return anyValue(kind);
  return kind % 9 === 8 ? kind : pick(TEXTS);
}

function anyValue(kind: number): unknown {
  const values = [
    () => ({ a: [1, { b: null }], u: undefined, 'key "quoted"\n☃': 1, 2: 'two', 1: 'one', ['__proto__']: 3 }),
    () => 'text',
    () => 12.5,
    () => [1, [2, 'x'], undefined, () => 1, Number.NaN, -0],
    () => Number.POSITIVE_INFINITY,
    () => ({ toJSON: () => ({ called: true }) }),
    () => new Date(0),
    () => false,
    () => () => 1,
    () => new Date(Number.NaN),
    () => Object.create(null),
    () => new Map([[1, 2]]),
    () => Object('boxed'),
    () => [{ toJSON: (key: string) => key }, new Uint8Array(2)],
    () => ({ nested: { deep: 'x'.repeat(kind % 300) } }),
    () => Promise.resolve(kind % 2 === 0 ? { later: true } : null),
    () => -0,
    () => Symbol('any'),
  ];
  const rare = kind % 400;
  if (rare === 0) return 12n;
  if (rare === 1) return { toJSON: () => 12n };
  return values[kind % values.length]?.();
}
