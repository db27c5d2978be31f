import type { Stats } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import type { NotFound } from '../disk/open-inside-root.ts';
import type { Representation } from './representation.ts';
import type { Dependency } from './resolve-file.ts';

/** The content of a file that may be compressed. */
export interface FileContent {
  /** The strong ETag of the bytes. */
  readonly etag: string;
  readonly size: number;
  /** Reads the bytes; undefined when the file has other content now. */
  readonly read: () => Promise<Buffer | undefined>;
}

/** The properties of a request's context that decide which representation it gets. */
export interface SelectionRules {
  /** Whether other code has set an ETag, so that conditions do not apply to ours. */
  readonly hasOtherEtag: boolean;
  readonly acceptsRanges: boolean;
}

/** The codings of a file that are created while it is served. */
export interface CreatedCodings {
  /**
   * Selects a representation for a request: undefined for the file itself, 'none' if the client accepts no
   * representation.
   */
  select(request: IncomingMessage, rules: SelectionRules): Representation | undefined | 'none';
}

/** The codings of a file that need another version of the file as their dictionary. */
export interface DeltaCodings {
  /** Returns undefined if the client has no known dictionary, or while the result is not ready. */
  select(request: IncomingMessage, rules: SelectionRules): Representation | undefined;
}

/** Creates the codings of loaded files. */
export interface CodingFactory {
  accepts(type: string, size: number): boolean;
  /** @param identity - the representation of the file itself */
  create(content: FileContent, identity: Representation): CreatedCodings;
  /** Undefined without the option `compress.dictionaries`. */
  readonly deltas: DeltaFactory | undefined;
}

/** Creates the codings with dictionaries of loaded files. */
export interface DeltaFactory {
  /**
   * Returns the value of `Use-As-Dictionary`; undefined for files that are not immutable or whose name
   * contains no hash.
   *
   * @param filePath - the path below the root, with slashes
   */
  headerFor(filePath: string, cacheControl: string | undefined): string | undefined;
  create(filePath: string, content: FileContent, identity: Representation): DeltaCodings;
}

/** A file with its headers and bodies, as the cache stores it. */
export interface LoadedFile {
  readonly kind: 'file';
  /** All paths whose stat decided that this file is served. */
  readonly dependencies: readonly Dependency[];
  readonly uncompressed: Representation;
  /** Representations from precompressed copies; empty for most files. */
  readonly precompressed: readonly Representation[];
  /** Codings that are created while the file is served; undefined without the option `compress`. */
  readonly createdCodings: CreatedCodings | undefined;
  /** Codings with another version of the file as their dictionary; undefined for most files. */
  readonly deltas: DeltaCodings | undefined;
  /** The argument of the `setHeaders` option; undefined without the option. */
  readonly stats: Stats | undefined;
  /**
   * Whether the bodies can be streamed from disk instead of memory; false if they are derived from the file.
   */
  readonly canStream: boolean;
  /**
   * Whether another write could leave the timestamps unchanged; the next request then reads the file again.
   */
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
