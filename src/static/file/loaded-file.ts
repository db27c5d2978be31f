import type { Stats } from 'node:fs';
import type { NotFound } from '../disk/open-inside-root.ts';
import type { Representation } from './representation.ts';
import type { Dependency } from './resolve-file.ts';

/** A file with its headers and bodies, as the cache stores it. */
export interface LoadedFile {
  readonly kind: 'file';
  /** All paths whose stat decided that this file is served. */
  readonly dependencies: readonly Dependency[];
  readonly uncompressed: Representation;
  /** Representations from precompressed copies; empty for most files. */
  readonly precompressed: readonly Representation[];
  /** The argument of the `setHeaders` option; undefined without the option. */
  readonly stats: Stats | undefined;
  /** Whether the bodies can be streamed from disk instead of memory; false if they are derived from the file. */
  readonly canStream: boolean;
  /** Bytes of all bodies in memory. */
  readonly bodyBytes: number;
  /** Whether another write could leave the timestamps unchanged; the next request then reads the file again. */
  readonly isRacilyClean: boolean;
  /** The latest ctime of the files, in milliseconds since the epoch. */
  readonly changedAt: number;
}

/** Returns the file without the bodies in memory; responses then stream it from disk. */
export function withoutBodies(file: LoadedFile): LoadedFile {
  return {
    ...file,
    uncompressed: { ...file.uncompressed, body: undefined },
    precompressed: file.precompressed.map((representation) => ({ ...representation, body: undefined })),
    bodyBytes: 0,
  };
}

/** The result of loading a URL path. `busy`: the file kept changing while it was read. */
export type LoadResult = LoadedFile | { readonly kind: 'directory' } | { readonly kind: 'busy' } | NotFound;
