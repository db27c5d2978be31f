import { createHash } from 'node:crypto';
import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import zlib, { type ZlibOptions } from 'node:zlib';
import type { Precompressed } from '../../types/static.ts';
import type { OpenedFile, Snapshot } from './files.ts';
import { etagFromDigest, etagOfBytes } from './hash.ts';

export const COPY_EXTENSIONS: Readonly<Record<Precompressed, string>> = {
  br: '.br',
  zstd: '.zst',
  gzip: '.gz',
};

// Node has zstd since 22.15.
const { createZstdDecompress }: { createZstdDecompress?: typeof zlib.createGunzip } = Object(zlib);

const DECODERS: Readonly<Record<Precompressed, ((options: ZlibOptions) => Transform) | undefined>> = {
  br: zlib.createBrotliDecompress,
  gzip: zlib.createGunzip,
  zstd: createZstdDecompress,
};

// Deployment tools and file systems round times; FAT has the coarsest, of two seconds.
const MTIME_TOLERANCE_NS = 2_000_000_000n;
// Bytes that are decompressed at once.
const CHUNK = 64 * 1024;

interface CopyToCompare {
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
  const createDecoder = DECODERS[coding];
  if (createDecoder === undefined || source.contentEtag === undefined) {
    // A source is not hashed in the first milliseconds after a write; the next request compares the content.
    if (!file.isOnDisk) return 'its source is not hashed';
    if (source.isRacilyClean) return 'its source was written a moment ago';
    const isOlder = copy.version.mtimeNs + MTIME_TOLERANCE_NS < source.version.mtimeNs;
    return isOlder ? 'it is older than its source' : undefined;
  }
  const chunks = copy.body === undefined ? file.chunks() : undefined;
  const compressed = chunks ?? [copy.body];
  try {
    const etag = await etagOfDecoded(compressed, createDecoder, Number(source.version.size));
    return etag === source.contentEtag ? undefined : 'its content differs from its source';
  } finally {
    await chunks?.return(undefined);
  }
}

/**
 * Whether compressed bytes are a copy of `source` that browsers can decompress; false if this version of Node
 * cannot decompress the coding.
 */
export async function isCopyOf(copy: Buffer, source: Buffer, coding: Precompressed): Promise<boolean> {
  const createDecoder = DECODERS[coding];
  if (createDecoder === undefined) return false;
  const etag = await etagOfDecoded([copy], createDecoder, source.length);
  return etag !== undefined && etag === (await etagOfBytes(source));
}

/** Returns the ETag of decompressed bytes; undefined when they are corrupt, or longer than `size` like a decompression bomb. */
async function etagOfDecoded(
  compressed: Iterable<unknown> | AsyncIterable<unknown>,
  createDecoder: (options: ZlibOptions) => Transform,
  size: number,
): Promise<string | undefined> {
  const hash = createHash('sha1');
  let length = 0;
  try {
    const decoder = createDecoder({ chunkSize: CHUNK });
    await pipeline(compressed, decoder, async (output: AsyncIterable<Buffer>) => {
      for await (const chunk of output) {
        length += chunk.length;
        if (length > size) throw new Error('longer than the source');
        hash.update(chunk);
      }
    });
    return etagFromDigest(length, hash);
  } catch {
    return undefined;
  }
}
