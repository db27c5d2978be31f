import { createHash } from 'node:crypto';
import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import zlib from 'node:zlib';
import type { Precompressed } from '../../types/static.ts';
import { etagFromDigest } from './hash.ts';
import type { OpenedFile, Snapshot } from './load.ts';

/** Extensions of compressed copies. */
export const COPY_EXTENSIONS: Readonly<Record<Precompressed, string>> = {
  br: '.br',
  zstd: '.zst',
  gzip: '.gz',
};

interface Decoder {
  readonly decode: (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;
  readonly createStream: () => Transform;
}

// Node has zstd since 22.15.
const { zstdDecompress, createZstdDecompress }: typeof zlib & ZstdFunctions = zlib;

interface ZstdFunctions {
  readonly zstdDecompress?: typeof zlib.gunzip;
  readonly createZstdDecompress?: typeof zlib.createGunzip;
}

/** Decompressors by coding. */
const DECODERS: Readonly<Record<Precompressed, Decoder | undefined>> = {
  br: { decode: promisify(zlib.brotliDecompress), createStream: () => zlib.createBrotliDecompress() },
  gzip: { decode: promisify(zlib.gunzip), createStream: () => zlib.createGunzip() },
  zstd:
    zstdDecompress === undefined || createZstdDecompress === undefined
      ? undefined
      : { decode: promisify(zstdDecompress), createStream: () => createZstdDecompress() },
};

// Deployment tools and file systems round times; FAT has the coarsest, of two seconds.
const MTIME_TOLERANCE_NS = 2_000_000_000n;

/** A compressed copy that is compared with its source. */
export interface CopyToCompare {
  readonly file: OpenedFile;
  readonly copy: Snapshot;
  readonly coding: Precompressed;
  readonly source: Snapshot;
}

/**
 * Returns why a compressed copy does not belong to its source; undefined when it does. The copy is
 * decompressed and compared with the content ETag or the bytes of the source, because deployment tools do not
 * keep the order of modification times. Times are compared only if the source was not hashed, or if this
 * version of Node cannot decompress the coding.
 */
export async function compareCopy(comparison: CopyToCompare): Promise<string | undefined> {
  const { file, copy, coding, source } = comparison;
  const decoder = DECODERS[coding];
  if (decoder === undefined || source.contentEtag === undefined) {
    // A source is not hashed in the first milliseconds after a write; the next request compares the content.
    if (!file.isOnDisk) return 'its source is not hashed';
    if (source.isRacilyClean) return 'its source was written a moment ago';
    const isOlder = copy.version.mtimeNs + MTIME_TOLERANCE_NS < source.version.mtimeNs;
    return isOlder ? 'it is older than its source' : undefined;
  }
  const isSame =
    copy.body !== undefined && source.body !== undefined
      ? await decodesTo(copy.body, source.body, decoder)
      : (await hashDecoded(file, decoder, Number(source.version.size))) === source.contentEtag;
  return isSame ? undefined : 'its content differs from its source';
}

/**
 * Whether compressed bytes are a copy of `source` that browsers can decompress; false if this version of Node
 * cannot decompress the coding.
 */
export async function isCopyOf(copy: Buffer, source: Buffer, coding: Precompressed): Promise<boolean> {
  const decoder = DECODERS[coding];
  return decoder !== undefined && (await decodesTo(copy, source, decoder));
}

/**
 * Whether bytes decompress to `expected`. Output longer than `expected` is not read, which stops
 * decompression bombs.
 */
async function decodesTo(compressed: Buffer, expected: Buffer, { decode }: Decoder): Promise<boolean> {
  try {
    const bytes = await decode(compressed, { maxOutputLength: Math.max(expected.length, 1) });
    return bytes.equals(expected);
  } catch {
    return false;
  }
}

/** Returns the ETag of the decompressed bytes; undefined when they are corrupt or longer than `size`. */
async function hashDecoded(
  file: OpenedFile,
  { createStream }: Decoder,
  size: number,
): Promise<string | undefined> {
  const hash = createHash('sha1');
  let length = 0;
  const input = file.chunks();
  try {
    await pipeline(input, createStream(), async (output: AsyncIterable<Buffer>) => {
      for await (const chunk of output) {
        length += chunk.length;
        if (length > size) throw new Error('longer than the source');
        hash.update(chunk);
      }
    });
    return etagFromDigest(length, hash);
  } catch {
    return undefined;
  } finally {
    await input.stop();
  }
}
