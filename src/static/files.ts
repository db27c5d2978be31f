import type { Stats } from 'node:fs';
import type { MaybePromise } from '../../types/connect.ts';
import type { FileVersion, OpenFileVersion } from './version.ts';

/** A path whose stat decided the result, with the version that was found; undefined: there was no file. */
export interface Dependency {
  readonly path: string;
  readonly version: FileVersion | undefined;
}

/** What is at a path. Only regular files are opened: a FIFO would block a thread, and a device may never end. */
export interface PathStat {
  readonly kind: 'file' | 'directory' | 'other';
  readonly version: FileVersion;
}

/** A name in a folder. What a link leads to may change without the folder. */
export interface FolderName {
  readonly name: string;
  readonly kind: 'file' | 'directory';
  readonly isLink: boolean;
}

/** The URL path leads to no file that may be served. */
export interface NotFound {
  readonly kind: 'not-found';
  /** The reason for the debug log; never sent to the client. */
  readonly reason: string;
  readonly error?: Error | undefined;
}

export function notFound(reason: string, error?: Error): NotFound {
  return { kind: 'not-found', reason, error };
}

/** The files that a middleware serves: those of a directory, or of a source. */
export interface Files {
  /** Returns the path for `stat` and `open` of a file, given as its URL path below the root. */
  pathOf(filePath: string): string;
  /** Returns undefined if there is nothing that may be served. */
  stat(path: string, onNothing?: (error: Error) => void): Promise<PathStat | undefined>;
  /** Opens a file that `stat` has found, unless it is outside the root. Undefined if the path has changed. */
  open(path: string, version: FileVersion): Promise<OpenedFile | NotFound | undefined>;
  /** Returns the names in a folder, given as its path below the root with a slash at the end; undefined without one. */
  names(folder: string): Promise<readonly FolderName[] | undefined>;
  /** Whether a path still leads to the same real path inside the root. */
  resolvesTo(path: string, realPath: string): MaybePromise<boolean>;
  /** Whether the event loop may check these paths itself. */
  allowsSync(dependencies: readonly Dependency[]): boolean;
  /** False if a path has changed, or if it cannot be checked on the event loop. */
  isUnchangedSync(dependencies: readonly Dependency[]): boolean;
  isUnchanged(dependencies: readonly Dependency[]): Promise<boolean>;
}

export interface OpenedFile {
  readonly kind: 'opened';
  /** The path without symbolic links. */
  readonly realPath: string;
  /** False for a file of a source: without a hash, its ETag comes from its version. */
  readonly isOnDisk: boolean;
  /** The current version; undefined when it is not a regular file. */
  version(): Promise<OpenFileVersion | undefined>;
  /** The following return undefined when the file has become shorter. */
  read(size: number): Promise<Buffer | undefined>;
  hash(size: number): Promise<string | undefined>;
  /** `return()` resolves when the file is not read any more. */
  chunks(): AsyncGenerator<Uint8Array, undefined>;
  /** The argument of `setHeaders`. */
  stats(): Promise<Stats>;
  close(): void;
}

/** One version of a file, read while it did not change. */
export interface Snapshot {
  readonly version: FileVersion;
  readonly body: Buffer | undefined;
  readonly etag: string | undefined;
  /** The ETag from the bytes, to identify the content for compression; undefined if they were not hashed. */
  readonly contentEtag: string | undefined;
  readonly modified: number | undefined;
  readonly stats: Stats | undefined;
  readonly isRacilyClean: boolean;
}

/** Opens a file that a stat has found, and closes it after its use; undefined if it has moved or may not be served. */
export async function withOpen<T>(
  files: Pick<Files, 'open'>,
  path: string,
  version: FileVersion,
  use: (file: OpenedFile) => Promise<T>,
): Promise<T | undefined> {
  const file = await files.open(path, version);
  if (file?.kind !== 'opened') return undefined;
  try {
    return await use(file);
  } finally {
    file.close();
  }
}
