import { promisify } from 'node:util';
import zlib, { constants, type InputType } from 'node:zlib';
import type { Precompressed } from '../../types/static.ts';
import { type EncodingWeights, parseAcceptEncoding } from './negotiation.ts';

/** A content coding that a body may be sent in. */
export type Coding = Precompressed;

/** The weights of an `Accept-Encoding`, and the order of the codings for it. */
export interface Preferences {
  readonly weightOf: EncodingWeights;
  readonly identityWeight: number;
  /** The indexes of the codings that the client prefers to the body itself, the best first. */
  readonly preferred: readonly number[];
}

/** Orders codings by the weights of a header; the first of those that it weights equally is preferred. */
export function parsePreferences(header: string | undefined, codings: readonly Coding[]): Preferences {
  const weightOf = parseAcceptEncoding(header);
  const identityWeight = weightOf('identity');
  const weights = codings.map(weightOf);
  const weightAt = (index: number): number => weights[index] as number;
  const preferred = [...codings.keys()]
    .filter((index) => weightAt(index) > 0 && weightAt(index) >= identityWeight)
    .sort((a, b) => weightAt(b) - weightAt(a));
  return { weightOf, identityWeight, preferred };
}

/** Output is written in one buffer if it fits, which needs one call of the library. */
const chunkFor = ({ length }: Buffer): number => Math.min(length + 1024, 256 * 1024);

interface EncoderOptions {
  readonly chunkSize: number;
  readonly params: Record<number, number>;
}

type Compress = (
  input: InputType,
  options: EncoderOptions,
  done: (error: Error | null, result: Buffer) => void,
) => void;

interface Encoder {
  readonly library: string | undefined;
  encode(bytes: Buffer, level: number): Promise<Buffer>;
  encodeSync(bytes: Buffer, level: number): Buffer;
}

// Node has zstd since 22.15.
const {
  zstdCompress,
  zstdCompressSync,
}: {
  readonly zstdCompress?: Compress;
  readonly zstdCompressSync?: (input: InputType, options: EncoderOptions) => Buffer;
} = Object(zlib);
const { ZSTD_c_compressionLevel: ZSTD_LEVEL = 100 }: Readonly<Record<string, number>> = Object(constants);
const libraries = new Map(Object.entries(process.versions));
const brotli = promisify(zlib.brotliCompress);
const gzip = promisify(zlib.gzip);
const zstd = zstdCompress && promisify(zstdCompress);

const brotliOptions = (bytes: Buffer, level: number): EncoderOptions => ({
  chunkSize: chunkFor(bytes),
  params: { [constants.BROTLI_PARAM_QUALITY]: level, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
});
const zstdOptions = (bytes: Buffer, level: number): EncoderOptions => ({
  chunkSize: chunkFor(bytes),
  params: { [ZSTD_LEVEL]: level },
});
const gzipOptions = (bytes: Buffer, level: number) => ({ level, chunkSize: chunkFor(bytes) });

const ENCODERS: Readonly<Record<Coding, Encoder | undefined>> = {
  br: {
    library: libraries.get('brotli'),
    encode: (bytes, level) => brotli(bytes, brotliOptions(bytes, level)),
    encodeSync: (bytes, level) => zlib.brotliCompressSync(bytes, brotliOptions(bytes, level)),
  },
  zstd: zstd &&
    zstdCompressSync && {
      library: libraries.get('zstd'),
      encode: (bytes, level) => zstd(bytes, zstdOptions(bytes, level)),
      encodeSync: (bytes, level) => zstdCompressSync(bytes, zstdOptions(bytes, level)),
    },
  gzip: {
    library: libraries.get('zlib'),
    encode: (bytes, level) => gzip(bytes, gzipOptions(bytes, level)),
    encodeSync: (bytes, level) => zlib.gzipSync(bytes, gzipOptions(bytes, level)),
  },
};

/** Whether this version of Node can compress with a coding. */
export const canEncode = (coding: Coding): boolean => ENCODERS[coding] !== undefined;

/** Compresses bytes in the thread pool. */
export const encode = (bytes: Buffer, coding: Coding, level: number): Promise<Buffer> =>
  encoderFor(coding).encode(bytes, level);

/** Compresses bytes on the event loop. */
export const encodeSync = (bytes: Buffer, coding: Coding, level: number): Buffer =>
  encoderFor(coding).encodeSync(bytes, level);

function encoderFor(coding: Coding): Encoder {
  const encoder = ENCODERS[coding];
  if (encoder === undefined) throw new Error(`This version of Node cannot compress with ${coding}`);
  return encoder;
}

/**
 * Identifies the output for given bytes: equal values give equal bytes. Output depends on the level, on the version
 * of the library, and on the instructions that the processor has.
 */
export function encodingId(coding: Coding, level: number): string {
  const library = `${ENCODERS[coding]?.library ?? ''}${process.arch}`.replace(/[^\da-z]/gi, '');
  return `${coding}${level}.${library}`;
}

/** The ETag of a body in a coding, from that of the body itself. A weak one covers all codings. */
export const encodedTag = (tag: string, id: string): string =>
  tag.startsWith('W/') ? tag : tag.replace(/"$/, `-${id}"`);
