import { type BigIntStats, existsSync, readlinkSync, type Stats, stat, statfsSync, statSync } from 'node:fs';
import { lstat, opendir, readdir, realpath } from 'node:fs/promises';
import { isAbsolute, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { noteProgramFiles, writeLog } from '../diagnostics/logging.ts';
import { codeOf } from '../http/reply.ts';
import { formatValue, optionError, wrongArgument } from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import {
  type Dependency,
  type Files,
  type FolderName,
  type NotFound,
  notFound,
  type PathStat,
} from './files.ts';
import { OpenFile, openOrUndefined } from './open-file.ts';
import type { StaticSettings } from './options.ts';
import { type FileVersion, fileVersionOf, sameOrAbsent, sameVersion } from './version.ts';

/** Checks the `dir` argument. The directory must exist when the middleware is created, unless `missing` is 'allow'. */
export function resolveRoot(
  dir: unknown,
  { missing, followSymlinks }: Pick<StaticSettings, 'missing' | 'followSymlinks'>,
): RootDirectory {
  if (!isPath(dir)) throw wrongArgument(STATIC_OPTIONS, 'dir', dir, 'a path or a file: URL');
  const path = resolve(typeof dir === 'string' ? dir : fileURLToPath(dir));
  const stats = statOf(path);
  if (stats?.isDirectory() === true) {
    if (containsProgram(path)) noteProgramFiles(path);
    return new RootDirectory(path, followSymlinks);
  }
  if (stats === undefined && missing === 'allow') {
    writeLog(
      'warn',
      `staticFiles: ${path} does not exist. Requests get a 404 until it does (option "missing")`,
    );
    return new RootDirectory(path, followSymlinks);
  }
  const problem =
    stats === undefined
      ? "does not exist. Create the directory before the call, or set missing: 'allow' if it appears later"
      : `is ${stats.isFile() ? 'a file' : 'not a directory'}. Pass the directory that contains it`;
  const hint =
    isAbsolute(`${dir}`) || dir instanceof URL
      ? ''
      : `; relative paths start at the working directory, ${process.cwd()}`;
  const message = `staticFiles: ${path} ${problem}${hint}`;
  throw Object.assign(new Error(message), { code: 'ERR_STATIC_ROOT', path });
}

/** The metadata of a path; undefined if there is nothing, also because a part of it is a file. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (codeOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

function containsProgram(path: string): boolean {
  const folder = process.cwd();
  return withSeparator(folder).startsWith(withSeparator(path)) && existsSync(join(folder, 'package.json'));
}

/** An empty string, for example from an unset environment variable, would mean the working directory. */
function isPath(dir: unknown): dir is string | URL {
  return typeof dir === 'string' ? dir !== '' : dir instanceof URL && dir.protocol === 'file:';
}

/** Checks that the pages of the options exist: a page that is missing would be a 404 for every navigation. */
export function assertPages(root: RootDirectory, pages: Pick<StaticSettings, 'fallback' | 'notFound'>): void {
  for (const name of ['fallback', 'notFound'] as const) {
    const page = pages[name];
    if (page === undefined || page === 'nearest' || statOf(root.pathOf(page))?.isFile() === true) continue;
    const message = `option "${name}" is ${formatValue(page.slice(1))}, which is not a file in ${root.path}; create it before the call, for example with the build of your front end, and pass its path below this directory`;
    throw optionError(STATIC_OPTIONS, message);
  }
}

// Entries of a folder that one operation of the thread pool reads.
const ENTRIES_PER_READ = 512;

const SYNC_STAT = { bigint: true, throwIfNoEntry: false } as const;

/** The directory that a middleware serves. Its path may be a symbolic link that a deployment switches at any time. */
export class RootDirectory implements Files {
  readonly path: string;
  readonly followsLinks: boolean;
  /** The device of the directory if the kernel caches its inodes; undefined for other file systems, and if it was missing. */
  readonly localDevice: bigint | undefined;
  #realPath: string | undefined;
  #inode: bigint | undefined;

  /** @param followsLinks - whether symbolic links may lead out of the directory */
  constructor(path: string, followsLinks = false) {
    this.path = path;
    this.followsLinks = followsLinks;
    this.localDevice = localDeviceOf(path);
  }

  /** The path of a file, given as its URL path below the root. */
  pathOf(urlPath: string): string {
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

  async stat(path: string, onNothing?: (error: Error) => void): Promise<PathStat | undefined> {
    const stats = await statOrUndefined(path, onNothing);
    if (stats === undefined) return undefined;
    const kind = stats.isFile() ? 'file' : stats.isDirectory() ? 'directory' : 'other';
    return { kind, version: fileVersionOf(stats) };
  }

  /**
   * Opens a file that a stat has found, unless it is outside the root. Compares the path of the open descriptor, so that a
   * link that is switched between check and open is detected before the first byte is read. Returns undefined if the path
   * has changed and must be resolved again.
   */
  async open(path: string, { dev }: FileVersion): Promise<OpenFile | NotFound | undefined> {
    const file = await openLiteral(this, path, dev === this.localDevice);
    if (file !== undefined) return file;
    const realPath = await resolveInsideRoot(this, path);
    return typeof realPath === 'string' ? openRealPath(realPath) : realPath;
  }

  /** Leaves out links that lead out of the root. A folder that is replaced meanwhile has no names. */
  async names(folder: string): Promise<readonly FolderName[] | undefined> {
    try {
      const path = this.pathOf(folder.replace(/\/$/, ''));
      const realPath = await this.#realFolder(path);
      if (realPath === undefined) return undefined;
      const names: FolderName[] = [];
      // One array of all entries would block the event loop while it is made.
      for await (const entry of await opendir(realPath, { bufferSize: ENTRIES_PER_READ })) {
        const { name } = entry;
        const isLink = entry.isSymbolicLink();
        if (isLink && !(await leadsInside(this, join(path, name)))) continue;
        const target = isLink ? await statOrUndefined(join(path, name)) : entry;
        if (target?.isFile()) names.push({ name, kind: 'file', isLink });
        else if (target?.isDirectory()) names.push({ name, kind: 'directory', isLink });
      }
      return (await this.#realFolder(path)) === realPath ? names : undefined;
    } catch (error) {
      if (isNotFoundError(error)) return undefined;
      throw error;
    }
  }

  async #realFolder(path: string): Promise<string | undefined> {
    if (path === withSeparator(this.path)) return this.resolve();
    const realPath = await resolveInsideRoot(this, path);
    return typeof realPath === 'string' ? realPath : undefined;
  }

  async resolvesTo(path: string, realPath: string): Promise<boolean> {
    return (await resolveInsideRoot(this, path)) === realPath;
  }

  /** A stat of an inode that the kernel caches takes less of the event loop's time than an operation of the thread pool. */
  allowsSync(dependencies: readonly Dependency[]): boolean {
    const { localDevice } = this;
    if (localDevice === undefined) return false;
    return dependencies.every(({ version }) => version === undefined || version.dev === localDevice);
  }

  isUnchangedSync(dependencies: readonly Dependency[]): boolean {
    try {
      for (const { path, version } of dependencies) {
        if (!sameOrAbsent(version, statSync(path, SYNC_STAT))) return false;
      }
      return true;
    } catch {
      // The check in the thread pool handles the error.
      return false;
    }
  }

  /** Stats one path after the other: a check whose file system hangs blocks one thread. */
  async isUnchanged(dependencies: readonly Dependency[]): Promise<boolean> {
    try {
      for (const { path, version } of dependencies) {
        if (!sameOrAbsent(version, await statOrUndefined(path))) return false;
      }
      return true;
    } catch (error) {
      if (isStaleError(error)) return false;
      throw error;
    }
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

async function leadsInside(root: RootDirectory, path: string): Promise<boolean> {
  const realPath = await resolveInsideRoot(root, path).catch(() => undefined);
  return typeof realPath === 'string';
}

/** Opens a path without symbolic links below the root, which needs no separate resolution; undefined for other paths. */
async function openLiteral(
  root: RootDirectory,
  path: string,
  isLocal: boolean,
): Promise<OpenFile | undefined> {
  if (process.platform !== 'linux') return undefined;
  return openIf(path, isLocal, async (_file, actual) => actual === (await literalPath(root, path)));
}

/** Opens a real path that was inside the root. Returns undefined if the path has changed and must be resolved again. */
export function openRealPath(realPath: string): Promise<OpenFile | undefined> {
  return openIf(realPath, false, (file, actual) => isOpenAt(file, realPath, actual));
}

/** O_NOFOLLOW protects the last segment only, so that the path of the descriptor decides too. */
async function openIf(
  path: string,
  isLocal: boolean,
  isRight: (file: OpenFile, actual: string | undefined) => Promise<boolean>,
): Promise<OpenFile | undefined> {
  const fd = await openOrUndefined(path);
  if (fd === undefined) return undefined;
  const actual = descriptorPath(fd);
  // The name of a deleted file has a word more.
  const file = new OpenFile(fd, actual === `${path} (deleted)` ? path : (actual ?? path), isLocal);
  let isKept = false;
  try {
    isKept = await isRight(file, actual);
  } finally {
    if (!isKept) file.close();
  }
  return isKept ? file : undefined;
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

async function isOpenAt(file: OpenFile, realPath: string, actual: string | undefined): Promise<boolean> {
  // A file that was deleted after it was opened was still at this path when it was opened.
  if (actual !== undefined) return actual === realPath || actual === `${realPath} (deleted)`;
  const opened = await file.version();
  const atPath = await lstat(realPath, { bigint: true });
  return opened !== undefined && sameVersion(opened, atPath) && (await realpath(realPath)) === realPath;
}

/** Returns the path without symbolic links, and refuses files outside the root and other spellings of a name. */
async function resolveInsideRoot(root: RootDirectory, path: string): Promise<string | NotFound> {
  // The links of the root are resolved once, so that both steps see the same deployment if the root is
  // switched.
  const realRoot = await root.resolve();
  const relative = root.relative(path);
  const realPath = await realpath(withSeparator(realRoot) + relative);
  if (!root.followsLinks && !realPath.startsWith(withSeparator(realRoot))) {
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

// Errors that a request path can cause. All of them become a 404, which reveals nothing about the disk.
const NOT_FOUND = new Set([
  'ENOENT',
  'ENOTDIR',
  'ENAMETOOLONG',
  'ELOOP',
  'EACCES',
  'EPERM',
  'EINVAL',
  'ENXIO',
  'ENODEV',
  // The permission model of Node (`--permission`).
  'ERR_ACCESS_DENIED',
]);

/** Whether the error means that there is no file to serve at a path. */
export function isNotFoundError(error: unknown): boolean {
  return NOT_FOUND.has(codeOf(error) ?? '');
}

/** Whether the file exists but this process may not read it. */
export function isPermissionError(error: unknown): boolean {
  return ['EACCES', 'EPERM', 'ERR_ACCESS_DENIED'].includes(codeOf(error) ?? '');
}

/**
 * Whether the file was replaced or deleted on the server of a network file system. Opening the path again
 * finds the new file.
 */
export function isStaleError(error: unknown): boolean {
  return codeOf(error) === 'ESTALE';
}

// Linux file systems on a local disk or in memory, whose inodes the kernel caches.
const KERNEL_CACHED = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // xfs
  0x9123683e, // btrfs
  0xf2f52010, // f2fs
  0xca451a4e, // bcachefs
  0x01021994, // tmpfs
  0x858458f6, // ramfs
  0x794c7630, // overlayfs
  0x73717368, // squashfs
  0xe0f5e1e2, // erofs
]);

/**
 * Whether a repeated `stat` takes microseconds because the kernel caches the inode. False for network file
 * systems (NFS, SMB), FUSE, 9p and virtiofs, and for unknown types.
 */
export function isKernelCached(type: number, platform: NodeJS.Platform): boolean {
  return platform === 'linux' && KERNEL_CACHED.has(type);
}

/** The device of a directory on a kernel-cached file system; undefined for other file systems. */
export function localDeviceOf(directory: string): bigint | undefined {
  try {
    if (!isKernelCached(statfsSync(directory).type, process.platform)) return undefined;
    return statSync(directory, { bigint: true }).dev;
  } catch {
    return undefined;
  }
}

function statOrUndefined(
  path: string,
  onNotFound?: (error: Error) => void,
): Promise<BigIntStats | undefined> {
  return new Promise((done, fail) => {
    stat(path, { bigint: true }, (error, stats) => {
      if (error === null) done(stats);
      else if (isNotFoundError(error)) {
        onNotFound?.(error);
        done(undefined);
      } else fail(error);
    });
  });
}
