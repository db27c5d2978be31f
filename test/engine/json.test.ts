/** @tags once */
import {
  createBufferPool,
  type Sink,
  StaticText,
  withViews,
  writeNumber,
  writeStatic,
  writeString,
} from '../../src/engine/json.ts';

/** A sink with a small buffer, so that it has to grow at many offsets. */
const emptySink = (): Sink => {
  const buffer = withViews(Buffer.alloc(3));
  return { buffer, ...buffer, pos: 0, pool: createBufferPool() };
};

const textOf = ({ buf, pos }: Sink): string => buf.toString('utf8', 0, pos);

const written = (write: (sink: Sink) => void): string => {
  const sink = emptySink();
  write(sink);
  return textOf(sink);
};

const PIECES = [
  '"',
  '\\',
  '\n',
  '\b\f\t\r',
  '\0',
  '\x1f',
  ' ',
  '\x7f',
  'é',
  'Ł',
  '漢',
  '\u07ff',
  '\u0800',
  '\uffff',
  '\ud800',
  '\udfff',
  '😀',
  '!',
  '#',
  '[',
  ']',
  '~',
];

/** Each piece at each place of texts whose lengths are around the limits of the writers. */
function* texts(): Generator<string> {
  for (const length of [0, 1, 7, 38, 39, 40, 41, 42, 43, 44, 45, 60]) {
    const plain = 'abcdefg '.repeat(8).slice(0, length);
    yield plain;
    for (const piece of PIECES) {
      for (let at = 0; at <= length; at++) yield plain.slice(0, at) + piece + plain.slice(at);
      yield piece.repeat(length);
    }
  }
}

const NUMBERS = [
  [0, -0, 1, -1, 9, 10, 99, 100, 2 ** 31 - 1, -(2 ** 31), 2 ** 31, 2 ** 53, -(2 ** 53)],
  [0.5, -0.5, 0.05, -0.05, 0.1, 0.01, -0.01, 0.001, 0.25, 1.1, -1.01, 1.005, 19.99, -19.9, 0.3, 0.1 + 0.2],
  [21474836.47, -21474836.48, 21474836.48, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 123456.789],
].flat();

describe('JSON that is written without JSON.stringify', () => {
  it('writeString writes the same as JSON.stringify for escapes at every place of a string', () => {
    for (const text of texts()) expect(written((sink) => writeString(sink, text))).toBe(JSON.stringify(text));
  });

  it('writeString writes the same as JSON.stringify wherever the buffer ends', () => {
    for (const unit of ['a', 'é', '漢', '😀', '"', '\n', 'é"', '漢\\\n', '\x01é']) {
      for (const count of [3, 30, 50, 301]) {
        const text = unit.repeat(count);
        for (let room = 0; room < 12; room++) {
          const buffer = withViews(Buffer.alloc(Buffer.byteLength(text) + room));
          const sink: Sink = { buffer, ...buffer, pos: 0, pool: createBufferPool() };
          writeString(sink, text);
          writeString(sink, text);
          expect(textOf(sink)).toBe(JSON.stringify(text).repeat(2));
        }
      }
    }
  });

  it.each(['', 'a', ',"k":', ',"id":', ',"key":', ',"name":', ',"number":'])(
    'writeStatic writes %p',
    (text) => {
      const staticText = new StaticText(text);
      const twice = (sink: Sink): void => {
        for (let time = 0; time < 2; time++) writeStatic(sink, staticText);
      };
      expect(written(twice)).toBe(text.repeat(2));
    },
  );

  it.each(NUMBERS)('writeNumber writes the same as JSON.stringify for %p', (value) => {
    expect(written((sink) => writeNumber(sink, value))).toBe(JSON.stringify(value));
  });

  it('writeNumber writes the same as JSON.stringify for decimals with two places', () => {
    for (let hundredths = -20_000; hundredths <= 20_000; hundredths += 7) {
      const value = hundredths / 100;
      expect(written((sink) => writeNumber(sink, value))).toBe(JSON.stringify(value));
    }
  });

  it('writeString appends to the text before it', () => {
    const sink = emptySink();
    const long = 'one "two" three '.repeat(10);
    writeStatic(sink, new StaticText('['));
    for (let index = 0; index < 50; index++) {
      writeString(sink, long);
      writeStatic(sink, new StaticText(','));
    }
    expect(textOf(sink)).toBe(`[${`${JSON.stringify(long)},`.repeat(50)}`);
  });
});
