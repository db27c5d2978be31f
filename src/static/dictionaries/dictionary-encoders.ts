import { promisify } from 'node:util';
import zlib, { constants, type InputType } from 'node:zlib';

/** A content coding with a dictionary: Brotli or Zstandard (RFC 9842 §4 and §5). */
export type DictionaryCoding = 'dcb' | 'dcz';

interface Encoder {
  /** The bytes before the hash of the dictionary. */
  readonly magic: Buffer;
  readonly compress: Compress;
  readonly params: Readonly<Record<number, number>>;
  /** Identifies the output, with the dictionary and the content. */
  readonly id: string;
}

type Compress = (
  input: InputType,
  options: { params: Record<number, number>; chunkSize: number; dictionary: Buffer },
  done: (error: Error | null, result: Buffer) => void,
) => void;

type CompressSync = (input: InputType, options: { dictionary: Buffer }) => Buffer;

// @types/node knows neither zstd nor dictionaries.
interface Functions {
  readonly brotliCompress?: Compress;
  readonly zstdCompress?: Compress;
  readonly brotliCompressSync?: CompressSync;
  readonly zstdCompressSync?: CompressSync;
}

const CHUNK = 64 * 1024;
const { brotliCompress, zstdCompress, brotliCompressSync, zstdCompressSync }: Functions = Object(zlib);
const { ZSTD_c_compressionLevel: ZSTD_LEVEL = 100 }: Readonly<Record<string, number>> = Object(constants);
const libraries = new Map(Object.entries(process.versions));

function encoderOf(coding: DictionaryCoding): Encoder | undefined {
  return coding === 'dcb' ? BROTLI : ZSTD;
}

const BROTLI: Encoder | undefined = brotliCompress && {
  magic: Buffer.from('ff444342', 'hex'),
  compress: brotliCompress,
  params: { [constants.BROTLI_PARAM_QUALITY]: 11 },
  id: `dcb11.${libraries.get('brotli') ?? ''}`,
};
const ZSTD: Encoder | undefined = zstdCompress && {
  magic: Buffer.from('5e2a4d1820000000', 'hex'),
  compress: zstdCompress,
  params: { [ZSTD_LEVEL]: 19 },
  id: `dcz19.${libraries.get('zstd') ?? ''}`,
};

/**
 * Returns the codings that this version of Node can create. Versions that do not know the option `dictionary`
 * ignore it, so the function compresses a few bytes to find out.
 */
export function availableCodings(): readonly DictionaryCoding[] {
  const bytes = Buffer.from(Array.from({ length: 64 }, (_, index) => (index * index * 37) % 251));
  const codings: readonly [DictionaryCoding, CompressSync | undefined][] = [
    ['dcb', brotliCompressSync],
    ['dcz', zstdCompressSync],
  ];
  const isAvailable = (compress: CompressSync | undefined): boolean =>
    compress !== undefined && compress(bytes, { dictionary: bytes }).length < bytes.length / 2;
  return codings.filter(([, compress]) => isAvailable(compress)).map(([coding]) => coding);
}

/** Compresses bytes with a dictionary in the thread pool. `hash` is the SHA-256 of the dictionary. */
export async function encodeWithDictionary(
  bytes: Buffer,
  coding: DictionaryCoding,
  dictionary: Buffer,
  hash: Buffer,
): Promise<Buffer> {
  const encoder = encoderOf(coding);
  if (encoder === undefined) throw new Error(`This version of Node cannot compress with ${coding}`);
  const { magic, compress, params } = encoder;
  const body = await promisify(compress)(bytes, { params, chunkSize: CHUNK, dictionary });
  return Buffer.concat([magic, hash, body]);
}

/** Identifies the output of `encodeWithDictionary` for given bytes and a given dictionary. */
export function dictionaryEncodingId(coding: DictionaryCoding): string {
  return (encoderOf(coding)?.id ?? coding).replace(/[^\w.]/g, '');
}
