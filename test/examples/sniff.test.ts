/** @tags once */
import { sniff } from '../../examples/photo-wall/sniff.ts';

/** Bytes from text (latin1), numbers and lists of bytes. */
const bytes = (...parts: (string | number[])[]): Buffer =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part))),
  );
const zeros = (count: number): number[] => Array.from({ length: count }, () => 0);

const END = bytes([0, 0, 0, 0], 'IEND', [0xae, 0x42, 0x60, 0x82]);
const png = bytes('\x89PNG\r\n\x1a\n', [0, 0, 0, 13], 'IHDR', [0, 0, 1, 0, 0, 0, 0, 9], zeros(9));
const jpegHead = bytes([0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xff, 0xc4, 0, 3, 0]);
const frame = bytes([0xff, 0xc2, 0, 11, 8, 0, 9, 1, 0, 1, 1, 0x11, 0], zeros(10));
const gif = bytes('GIF89a', [0, 1, 9, 0], zeros(30), ';');
const riff = (chunk: Buffer): Buffer => bytes('RIFF', [chunk.length + 4, 0, 0, 0], 'WEBP', [...chunk]);
const lossy = riff(bytes('VP8 ', [20, 0, 0, 0, 0, 0, 0, 0x9d, 1, 0x2a, 0, 0x41, 9, 0], zeros(12)));
const lossless = riff(bytes('VP8L', [20, 0, 0, 0, 0x2f, 0xff, 0, 2, 0], zeros(12)));
const extended = riff(bytes('VP8X', [10, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 8, 0, 0], zeros(4)));
const ftyp = bytes([0, 0, 0, 24], 'ftypmif1', [0, 0, 0, 0], 'avifmiaf');
const ispe = bytes([0, 0, 0, 28], 'meta', [0, 0, 0, 20], 'ispe', zeros(4), [0, 0, 1, 0, 0, 0, 0, 9]);

describe('sniff', () => {
  it.each([
    ['png', bytes([...png], [...END])],
    ['jpeg', bytes([...jpegHead], [...frame], [0xff, 0xd9])],
    ['gif', gif],
    ['webp', lossy],
    ['webp', lossless],
    ['webp', extended],
    ['avif', bytes([...ftyp], [...ispe])],
  ])('sniff returns the type and size of a %s', (extension, content) => {
    expect(sniff(content)).toEqual({ type: `image/${extension}`, extension, width: 256, height: 9 });
  });

  it.each([
    ['a PNG without its end', png],
    ['a PNG with a width of 0', bytes([...png.subarray(0, 16)], zeros(8), zeros(9), [...END])],
    ['a JPEG without a frame', bytes([...jpegHead], zeros(30), [0xff, 0xd9])],
    ['a JPEG without its end', bytes([...jpegHead], [...frame])],
    ['a GIF without its end', gif.subarray(0, -1)],
    ['a WebP shorter than its header states', lossy.subarray(0, -4)],
    ['a WebP of an unknown kind', riff(bytes('VP9 ', zeros(30)))],
    ['an AVIF without its size', bytes([...ftyp], [0, 0, 0, 12], 'mdat', zeros(4))],
    ['an AVIF cut in a box', bytes([...ftyp], [...ispe.subarray(0, -2)])],
  ])('sniff throws for %s', (_what, content) => {
    expect(() => sniff(content)).toThrow('The picture is damaged or not complete.');
  });

  it('sniff throws for a picture with too many pixels', () => {
    const vast = bytes([...png.subarray(0, 16)], [0, 1, 0, 0, 0, 1, 0, 0], zeros(9), [...END]);
    expect(() => sniff(vast)).toThrow('The picture has too many pixels (65536 × 65536).');
  });

  it.each([
    '',
    'GIF',
    '<svg xmlns="http://www.w3.org/2000/svg"></svg>',
    'BM'.padEnd(60, 'x'),
    '%PDF-1.7'.padEnd(60),
  ])('sniff returns undefined for %j', (content) => {
    expect(sniff(Buffer.from(content))).toBeUndefined();
  });

  it('sniff never reads past the end of truncated files', () => {
    for (const whole of [bytes([...png], [...END]), jpegHead, gif, lossy, lossless, extended, ftyp]) {
      for (let length = 0; length <= whole.length; length++) {
        const padded = Buffer.concat([whole.subarray(0, length), Buffer.alloc(40, 0xff)]);
        for (const content of [whole.subarray(0, length), padded]) {
          try {
            sniff(content);
          } catch (error) {
            expect((error as Error).message).toMatch(/^The picture (is damaged|has too many)/);
          }
        }
      }
    }
  });
});
