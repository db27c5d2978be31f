import type { MaybePromise } from './connect.ts';

/** A file of a source. */
export interface SourceStat {
  /** Bytes of the content. */
  readonly size: number;
  /** A value that changes whenever the content changes. */
  readonly version: string;
  /** The modification time. Without it, responses have no `Last-Modified`. */
  readonly mtime?: Date | undefined;
}

/** A part of a file: its first and its last byte, both included. */
export interface SourceRange {
  readonly start: number;
  readonly end: number;
}

/** Bytes of a file: in one piece, or a stream. Node's `Readable` is an `AsyncIterable`. */
export type SourceBytes = Uint8Array | AsyncIterable<Uint8Array>;

/**
 * Files that `staticFiles` serves. Paths begin with a slash, such as `/docs/index.html`, and have no empty
 * segments, dot segments or backslashes.
 */
export interface StaticSource {
  /** Returns the metadata of a file, 'directory', or undefined if there is nothing at the path. */
  stat(path: string): MaybePromise<SourceStat | 'directory' | undefined>;
  /**
   * Returns exactly the bytes of a range of a file that `stat` has found. A stream that is not read to its
   * end is closed.
   */
  open(path: string, range: SourceRange): MaybePromise<SourceBytes>;
  /** Returns the paths of all files. */
  list(): MaybePromise<Iterable<string>>;
}

/** Files in memory. */
export interface MemoryFiles extends StaticSource {
  /**
   * Adds or replaces a file. Text is encoded as UTF-8. Bytes are not copied and must not change afterwards.
   * The default of `mtime` is the current time.
   */
  set(path: string, content: string | Uint8Array, options?: { readonly mtime?: Date | undefined }): void;
  /** Removes a file. Returns false if there is none. */
  delete(path: string): boolean;
}
