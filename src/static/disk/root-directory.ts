import { statSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { sep } from 'node:path';
import { localDeviceOf } from './local-device.ts';
import { Mounts } from './mounts.ts';

/**
 * The directory that a middleware serves. Its path may be a symbolic link that a deployment switches at any
 * time.
 */
export class RootDirectory {
  readonly path: string;
  /** The device of the directory if the kernel caches its inodes; undefined for other file systems. */
  readonly localDevice: bigint | undefined;
  readonly mounts: Mounts = new Mounts(() => this.#realPath ?? this.path);
  #realPath: string | undefined;
  #inode: bigint | undefined;

  constructor(path: string) {
    this.path = path;
    this.localDevice = localDeviceOf(path);
  }

  /** The path of a file, given as its URL path below the root. */
  join(urlPath: string): string {
    return joinUrlPath(this.path, urlPath);
  }

  /** The part of a path that follows the root and its separator. */
  relative(path: string): string {
    return path.slice(withSeparator(this.path).length);
  }

  /** The root without symbolic links, if it is known and still the same directory. */
  cachedRealPath(): string | undefined {
    return this.#inode !== undefined && this.#inode === this.#currentInode() ? this.#realPath : undefined;
  }

  /** Resolves the symbolic links of the root. */
  async resolve(): Promise<string> {
    const inode = this.#currentInode();
    const realPath = await realpath(this.path);
    this.#realPath = realPath;
    this.#inode = inode === this.#currentInode() ? inode : undefined;
    return realPath;
  }

  /** The inode; undefined if a synchronous stat may be slow. */
  #currentInode(): bigint | undefined {
    if (this.localDevice === undefined) return undefined;
    const stats = statSync(this.path, { bigint: true, throwIfNoEntry: false });
    return stats?.dev === this.localDevice ? stats.ino : undefined;
  }
}

/**
 * Returns the path of a file below a directory, given as its URL path. Nothing is normalised: the parser of
 * request paths accepts only paths that stay below the directory. `separator` is that of the system, except in
 * tests.
 */
export function joinUrlPath(directory: string, urlPath: string, separator: string = sep): string {
  const relative = separator === '/' ? urlPath : urlPath.replaceAll('/', separator);
  return withSeparator(directory, separator) + relative.slice(1);
}

/** Appends a separator, except to the root of the file system, which ends with one. */
export function withSeparator(directory: string, separator: string = sep): string {
  return directory.endsWith(separator) ? directory : directory + separator;
}
