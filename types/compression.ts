/** A content coding for which a compressed copy may exist: `.br`, `.zst` or `.gz`. */
export type Precompressed = 'br' | 'zstd' | 'gzip';

/** Compression of files while they are served. */
export interface CompressOptions {
  /**
   * The codings, in the order of preference among codings that the client weights equally. zstd needs Node
   * 22.15.
   * @default ['br', 'zstd', 'gzip']
   */
  codings?: readonly Precompressed[] | undefined;
  /**
   * Smallest file to compress, in bytes.
   * @default 1024
   */
  minBytes?: number | undefined;
  /**
   * Largest file to compress, in bytes.
   * @default 8388608 (8 MiB)
   */
  maxFileBytes?: number | undefined;
  /**
   * Bytes of compressed bodies in memory.
   * @default 33554432 (32 MiB)
   */
  maxBytes?: number | undefined;
  /**
   * Share of one CPU core that compression uses on average: over 0, at most 1.
   * @default 0.5
   */
  cpuShare?: number | undefined;
  /**
   * Whether immutable files whose name contains a hash are sent as the difference to an earlier version that
   * the browser has (RFC 9842, `dcb` and `dcz`). Experimental. `dcz` needs Node 22.19 or 24.6,
   * `dcb` Node 24.15.
   * @default false
   */
  dictionaries?: boolean | DictionaryOptions | undefined;
}

/** Compression with earlier versions of a file as dictionaries (RFC 9842). */
export interface DictionaryOptions {
  /**
   * Directories with previous builds, which have the same structure as the served directory. A directory that
   * does not exist is ignored. Versions in the served directory itself are always used.
   * @default []
   */
  previous?: string | readonly string[] | undefined;
}
