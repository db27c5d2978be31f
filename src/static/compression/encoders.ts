import { promisify } from 'node:util';
import zlib, { constants, type InputType } from 'node:zlib';
import type { Precompressed } from '../../../types/static.ts';

const MIB = 1 << 20;
// Output is written in one buffer if it fits, which needs one call of the thread pool.
const CHUNK = 256 * 1024;

interface Encoder {
  /** Levels for files up to a MiB, and for larger ones. */
  readonly levels: readonly [small: number, large: number];
  readonly library: string | undefined;
  encode(bytes: Buffer, level: number): Promise<Buffer>;
}

type Compress = (
  input: InputType,
  options: { params: Record<number, number>; chunkSize: number },
  done: (error: Error | null, result: Buffer) => void,
) => void;

// Node has zstd since 22.15.
const { zstdCompress }: { readonly zstdCompress?: Compress } = Object(zlib);
const { ZSTD_c_compressionLevel: ZSTD_LEVEL = 100 }: Readonly<Record<string, number>> = Object(constants);
const libraries = new Map(Object.entries(process.versions));
const brotli = promisify(zlib.brotliCompress);
const gzip = promisify(zlib.gzip);
const zstd = zstdCompress && promisify(zstdCompress);

const ENCODERS: Readonly<Record<Precompressed, Encoder | undefined>> = {
  br: {
    levels: [constants.BROTLI_MAX_QUALITY, 9],
    library: libraries.get('brotli'),
    encode: (bytes, level) =>
      brotli(bytes, {
        chunkSize: CHUNK,
        params: {
          [constants.BROTLI_PARAM_QUALITY]: level,
          [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
        },
      }),
  },
  zstd: zstd && {
    levels: [19, 12],
    library: libraries.get('zstd'),
    encode: (bytes, level) => zstd(bytes, { chunkSize: CHUNK, params: { [ZSTD_LEVEL]: level } }),
  },
  gzip: {
    levels: [constants.Z_BEST_COMPRESSION, constants.Z_BEST_COMPRESSION],
    library: libraries.get('zlib'),
    encode: (bytes, level) => gzip(bytes, { level, chunkSize: CHUNK }),
  },
};

/** Whether this version of Node can compress with a coding. */
export function canEncode(coding: Precompressed): boolean {
  return ENCODERS[coding] !== undefined;
}

/** Compresses bytes in the thread pool, at the highest level that is fast enough for the background. */
export async function encode(bytes: Buffer, coding: Precompressed): Promise<Buffer> {
  const encoder = encoderFor(coding);
  const result = await encoder.encode(bytes, levelFor(encoder, bytes.length));
  // The result may be a part of a larger buffer, which would stay in memory.
  const exact = Buffer.allocUnsafeSlow(result.length);
  result.copy(exact);
  return exact;
}

/** Compresses bytes at the highest level, however long it takes. */
export function encodeBest(bytes: Buffer, coding: Precompressed): Promise<Buffer> {
  const encoder = encoderFor(coding);
  return encoder.encode(bytes, encoder.levels[0]);
}

function encoderFor(coding: Precompressed): Encoder {
  const encoder = ENCODERS[coding];
  if (encoder === undefined) throw new Error(`This version of Node cannot compress with ${coding}`);
  return encoder;
}

/**
 * Identifies the output of `encode` for given bytes: equal values give equal bytes. Output depends on the
 * level, on the version of the library, and on the instructions that the processor has.
 */
export function encodingId(coding: Precompressed, size: number): string {
  const encoder = ENCODERS[coding];
  if (encoder === undefined) return coding;
  const library = `${encoder.library ?? ''}${process.arch}`.replace(/[^\da-z]/gi, '');
  return `${coding}${levelFor(encoder, size)}.${library}`;
}

function levelFor({ levels }: Encoder, size: number): number {
  return size <= MIB ? levels[0] : levels[1];
}
