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
  /** Whether another write could leave the timestamps unchanged; the next request then reads the file again. */
  readonly isRacilyClean: boolean;
  /** The latest ctime of the files, in milliseconds since the epoch. */
  readonly changedAt: number;
}

/** Bytes of all bodies in memory. */
export function bodyBytesOf({ uncompressed, precompressed }: LoadedFile): number {
  let bytes = uncompressed.body?.length ?? 0;
  for (const { body } of precompressed) bytes += body?.length ?? 0;
  return bytes;
}

/** Removes the bodies from memory; responses then read them from disk. */
export function dropBodies({ uncompressed, precompressed }: LoadedFile): void {
  uncompressed.body = undefined;
  for (const representation of precompressed) representation.body = undefined;
}

/** The result of loading a URL path. `busy`: the file kept changing while it was read. */
export type LoadResult = LoadedFile | { readonly kind: 'directory' } | { readonly kind: 'busy' } | NotFound;
