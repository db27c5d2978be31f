import { close, closeSync, constants, fstat, fstatSync, open, readlinkSync } from 'node:fs';
import { lstat, readdir, realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { promisify } from 'node:util';
import { codeOf } from '../../http/reply/system-error.ts';
import { type FileVersion, type OpenFileVersion, sameVersion } from './file-version.ts';
import { type RootDirectory, withSeparator } from './root-directory.ts';

const openAsync = promisify(open);
const fstatAsync = promisify(fstat);

// Windows has neither flag. With O_NONBLOCK, opening a FIFO that has replaced the file does not wait for a
// writer.
const NOFOLLOW = constants.O_NOFOLLOW ?? 0;
const NONBLOCK = constants.O_NONBLOCK ?? 0;

/** The URL path leads to no file that may be served. */
export interface NotFound {
  readonly kind: 'not-found';
  /** The reason for the debug log; never sent to the client. */
  readonly reason: string;
  /** The error of the file system. */
  readonly error?: Error | undefined;
}

export function notFound(reason: string, error?: Error): NotFound {
  return { kind: 'not-found', reason, error };
}

/** A file that was opened to be read. The operations are synchronous where they take microseconds. */
export class ReadableFile {
  readonly fd: number;
  /** The path without symbolic links. */
  readonly realPath: string;
  readonly #isLocal: boolean;

  constructor(fd: number, realPath: string, { isLocal }: { readonly isLocal: boolean }) {
    this.fd = fd;
    this.realPath = realPath;
    this.#isLocal = isLocal;
  }

  /** The current version; undefined when it is not a regular file. */
  async version(): Promise<OpenFileVersion | undefined> {
    const stats = this.#isLocal
      ? fstatSync(this.fd, { bigint: true })
      : await fstatAsync(this.fd, { bigint: true });
    return stats.isFile() ? stats : undefined;
  }

  /** Ignores errors: the descriptor is freed even when `close` fails. */
  close(): void {
    if (!this.#isLocal) {
      close(this.fd, () => {});
      return;
    }
    try {
      closeSync(this.fd);
    } catch {
      // The descriptor is freed nevertheless.
    }
  }
}

/**
 * Opens a file that a stat has found, unless it is outside the root. Compares the path of the open
 * descriptor, so that a link that is switched between check and open is detected before the first byte is
 * read. Returns undefined if the path has changed and must be resolved again.
 */
export async function openInsideRoot(
  root: RootDirectory,
  path: string,
  stats: FileVersion,
  options: { followSymlinks: boolean },
): Promise<ReadableFile | NotFound | undefined> {
  const file = await openLiteral(root, path, stats.dev === root.localDevice);
  if (file !== undefined) return file;
  const realPath = await resolveInsideRoot(root, path, options);
  return typeof realPath === 'string' ? openRealPath(realPath) : realPath;
}

/**
 * Opens a path without symbolic links below the root, which needs no separate resolution; undefined for other
 * paths.
 */
async function openLiteral(
  root: RootDirectory,
  path: string,
  isLocal: boolean,
): Promise<ReadableFile | undefined> {
  if (process.platform !== 'linux') return undefined;
  const fd = await openOrUndefined(path, NOFOLLOW);
  if (fd === undefined) return undefined;
  const actual = descriptorPath(fd);
  const file = new ReadableFile(fd, actual ?? path, { isLocal });
  try {
    if (actual === (await literalPath(root, path))) return file;
  } catch (error) {
    file.close();
    throw error;
  }
  file.close();
  return undefined;
}

/**
 * Opens a real path that was inside the root. Returns undefined if the path has changed and must be resolved
 * again.
 */
export async function openRealPath(realPath: string): Promise<ReadableFile | undefined> {
  // O_NOFOLLOW protects the last segment only, so the path of the descriptor is compared too.
  const fd = await openOrUndefined(realPath, NOFOLLOW);
  if (fd === undefined) return undefined;
  const file = new ReadableFile(fd, realPath, { isLocal: false });
  try {
    if (await isOpenAt(fd, realPath, descriptorPath(fd))) return file;
  } catch (error) {
    file.close();
    throw error;
  }
  file.close();
  return undefined;
}

async function openOrUndefined(path: string, flags: number): Promise<number | undefined> {
  try {
    return await openAsync(path, constants.O_RDONLY | NONBLOCK | flags);
  } catch (error) {
    // ELOOP and EMLINK: the last segment has become a link; ENOENT and ENOTDIR: it was deleted or moved.
    if (['ELOOP', 'EMLINK', 'ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return undefined;
    throw error;
  }
}

/** Returns the path of an open file; Linux reads it without access to a disk. */
function descriptorPath(fd: number): string | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return undefined;
  }
}

/** Returns the path that an open file has if no segment of `path` below the root is a symbolic link. */
async function literalPath(root: RootDirectory, path: string): Promise<string> {
  const realRoot = root.cachedRealPath() ?? (await root.resolve());
  return withSeparator(realRoot) + root.relative(path);
}

async function isOpenAt(fd: number, realPath: string, actual: string | undefined): Promise<boolean> {
  // A file that was deleted after it was opened was still at this path when it was opened.
  if (actual !== undefined) return actual === realPath || actual === `${realPath} (deleted)`;
  const opened = await fstatAsync(fd, { bigint: true });
  const atPath = await lstat(realPath, { bigint: true });
  return sameVersion(opened, atPath) && (await realpath(realPath)) === realPath;
}

/**
 * Returns the path without symbolic links, and refuses files outside the root and other spellings of a name.
 */
export async function resolveInsideRoot(
  root: RootDirectory,
  path: string,
  options: { followSymlinks: boolean },
): Promise<string | NotFound> {
  // The links of the root are resolved once, so that both steps see the same deployment if the root is
  // switched.
  const realRoot = await root.resolve();
  const relative = root.relative(path);
  const realPath = await realpath(withSeparator(realRoot) + relative);
  if (!options.followSymlinks && !realPath.startsWith(withSeparator(realRoot))) {
    return notFound('a symbolic link leads outside the root');
  }
  if (await isExactSpelling(realRoot, relative, realPath)) return realPath;
  return notFound('the spelling differs from the name on disk');
}

/**
 * Whether every segment has the spelling that it has on disk. A file system that ignores case or the Unicode
 * form would let `/.ENV` or `/A.TXT` bypass a guard. Symbolic links may lead to a name that differs in case
 * only.
 */
async function isExactSpelling(realRoot: string, relative: string, realPath: string): Promise<boolean> {
  if (withSeparator(realRoot) + relative === realPath) return true;
  let directory = realRoot;
  for (const segment of relative.split(sep)) {
    const path = join(directory, segment);
    const resolved = await realpath(path);
    if (resolved !== path) {
      if (!(await lstat(path)).isSymbolicLink()) return false;
      if (!(await readdir(directory)).includes(segment)) return false;
    }
    directory = resolved;
  }
  return true;
}
