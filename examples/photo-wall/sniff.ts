import { GraphQLError } from 'graphql';

/** The type and size of a picture, read from its bytes. A client can send any name and media type. */
export interface Picture {
  type: string;
  extension: string;
  width: number;
  height: number;
}

type Size = [width: number, height: number];

/** One format: its first bytes, its size, and whether the file is complete. */
interface Format {
  extension: string;
  begins(bytes: Buffer): boolean;
  size(bytes: Buffer): Size | undefined;
  ends(bytes: Buffer): boolean;
}

const text = (bytes: Buffer, from: number, to: number): string => bytes.toString('latin1', from, to);

const FORMATS: Format[] = [
  {
    extension: 'png',
    begins: (bytes) => text(bytes, 0, 8) === '\x89PNG\r\n\x1a\n' && text(bytes, 12, 16) === 'IHDR',
    size: (bytes) => [bytes.readUInt32BE(16), bytes.readUInt32BE(20)],
    ends: (bytes) => bytes.includes('IEND', -32, 'latin1'),
  },
  {
    extension: 'jpeg',
    begins: (bytes) => text(bytes, 0, 3) === '\xff\xd8\xff',
    size: jpegSize,
    ends: (bytes) => bytes.includes('\xff\xd9', -65_536, 'latin1'),
  },
  {
    extension: 'gif',
    begins: (bytes) => /^GIF8[79]a$/.test(text(bytes, 0, 6)),
    size: (bytes) => [bytes.readUInt16LE(6), bytes.readUInt16LE(8)],
    ends: (bytes) => bytes.includes(0x3b, -64),
  },
  {
    extension: 'webp',
    begins: (bytes) => text(bytes, 0, 4) === 'RIFF' && text(bytes, 8, 12) === 'WEBP',
    size: webpSize,
    ends: (bytes) => bytes.length >= bytes.readUInt32LE(4) + 8,
  },
  {
    extension: 'avif',
    // Brands of ISO/IEC 14496-12's first box.
    begins: (bytes) => text(bytes, 4, 8) === 'ftyp' && /avi[fs]/.test(text(bytes, 8, bytes.readUInt32BE(0))),
    size: avifSize,
    ends: boxesAreWhole,
  },
];

// A larger picture could decompress from a small file to gigabytes in the browser.
const MAX_PIXELS = 100_000_000;

/** A file is no picture that the wall can show. Visitors see the message, over GraphQL and over HTTP. */
export class PictureError extends GraphQLError {
  readonly status = 415;

  constructor(message: string) {
    super(message, { extensions: { code: 'NOT_A_PICTURE' } });
  }
}

/** Returns undefined for a file of another format. Throws a PictureError for a damaged or too large picture. */
export function sniff(bytes: Buffer): Picture | undefined {
  if (bytes.length < 32) return undefined;
  const format = FORMATS.find(({ begins }) => begins(bytes));
  if (format === undefined) return undefined;
  const [width, height] = format.size(bytes) ?? [0, 0];
  if (width === 0 || height === 0 || !format.ends(bytes))
    throw new PictureError('The picture is damaged or not complete.');
  if (width * height > MAX_PIXELS)
    throw new PictureError(`The picture has too many pixels (${width} × ${height}).`);
  return { type: `image/${format.extension}`, extension: format.extension, width, height };
}

/** Reads the segments up to the frame header (ITU-T T.81, table B.1). */
function jpegSize(bytes: Buffer): Size | undefined {
  for (let at = 2; at + 9 < bytes.length && bytes[at] === 0xff; ) {
    const marker = bytes[at + 1] as number;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return [bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5)];
    at += marker === 0xff ? 1 : 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}

/** The first chunk selects one of three layouts (RFC 9649). */
function webpSize(bytes: Buffer): Size | undefined {
  const kind = text(bytes, 12, 16);
  if (kind === 'VP8 ') return [bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff];
  if (kind === 'VP8X') return [bytes.readUIntLE(24, 3) + 1, bytes.readUIntLE(27, 3) + 1];
  if (kind !== 'VP8L') return undefined;
  const packed = bytes.readUInt32LE(21);
  return [(packed & 0x3fff) + 1, ((packed >> 14) & 0x3fff) + 1];
}

/** The first image extents property: a box of four-byte name, version and flags, width, height. */
function avifSize(bytes: Buffer): Size | undefined {
  const at = bytes.indexOf('ispe', 0, 'latin1');
  return at < 0 || at + 16 > bytes.length
    ? undefined
    : [bytes.readUInt32BE(at + 8), bytes.readUInt32BE(at + 12)];
}

function boxesAreWhole(bytes: Buffer): boolean {
  let at = 0;
  while (at + 8 <= bytes.length) {
    const size = bytes.readUInt32BE(at);
    // 0 means "to the end of the file"; 1 a 64-bit size, which no accepted picture needs.
    if (size === 0) return true;
    if (size < 8) return false;
    at += size;
  }
  return at === bytes.length;
}
