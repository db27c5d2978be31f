import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { link, mkdir, open, readdir, rename, stat, unlink, utimes } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { debug } from '../diagnostics/logging.ts';
import { codeOf } from '../http/reply.ts';
import { formatValue, optionError } from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import type { LoadedFile, LoadResult } from './cache.ts';
import { isImmutable } from './cache-control.ts';
import { type OpenedFile, withOpen } from './files.ts';
import { type LoadOptions, loadFile } from './load.ts';
import { mediaTypeOf } from './media-types.ts';
import type { KeepSettings, StaticSettings } from './options.ts';
import { warnOfSystem as warn } from './request.ts';
import { RootDirectory } from './root.ts';
import { walkFiles } from './tree.ts';
import { type FileVersion, sameContent, versionId } from './version.ts';

const DAY = 24 * 60 * 60 * 1000;
const HOUR = DAY / 24;
// A file that changed within this time may be written at the moment, so that a later scan keeps it.
const QUIET_MS = 1000;
const TEMPORARY = '.keep-';
const SCRIPT = /^(?:text\/(?:javascript|css)|application\/wasm)\b/;
// Errors after which writing the next file would fail too.
const UNWRITABLE = new Set(['EROFS', 'EACCES', 'EPERM', 'ENOSPC', 'EDQUOT', 'ENOENT', 'ERR_ACCESS_DENIED']);

interface Kept {
  readonly path: string;
  readonly size: number;
  readonly usedAt: number;
}

/**
 * The option `keep`: copies of immutable files that outlive their build. The modification time of a copy is the time of
 * its last use. Copies are no links: writing into a file of the build would change its copy too, and systems may forbid links
 * to files of other users.
 */
export class KeptFiles {
  readonly root: RootDirectory;
  readonly #build: RootDirectory;
  readonly #settings: KeepSettings;
  readonly #static: StaticSettings;
  /** Files of the build whose copy is known to be right. */
  readonly #done = new Map<string, string>();
  #work: Promise<void> = Promise.resolve();
  #isScanPlanned = false;
  #sweptAt = Number.NEGATIVE_INFINITY;
  #bytes = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(settings: KeepSettings, build: RootDirectory, statics: StaticSettings) {
    const { directory } = settings;
    if ((directory + sep).startsWith(build.path + sep) || (build.path + sep).startsWith(directory + sep))
      throw optionError(
        { ...STATIC_OPTIONS, page: 'earlier-builds' },
        `option "keep.directory" is ${directory}, which overlaps with ${build.path}; use a directory outside of it`,
      );
    try {
      mkdirSync(directory, { recursive: true });
    } catch (error) {
      if (codeOf(error) === 'EEXIST')
        throw optionError(
          { ...STATIC_OPTIONS, page: 'earlier-builds' },
          `option "keep.directory" is ${formatValue(directory)}, which is a file; use a directory`,
        );
      this.#report(error, directory);
    }
    this.root = new RootDirectory(directory, statics.followSymlinks);
    this.#build = build;
    this.#settings = settings;
    // A copy has the time of its last use, and only exact names are kept.
    this.#static = {
      ...statics,
      lastModified: false,
      extensions: [],
      index: [],
      cleanUrls: false,
      urls: undefined,
      variants: [],
      languages: [],
    };
    this.#refresh();
    const self = new WeakRef(this);
    const timer = setInterval(() => {
      const kept = self.deref();
      if (kept === undefined) clearInterval(timer);
      else kept.#refresh();
    }, DAY / 2).unref();
    this.#timer = timer;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Also notes that the files of this build are still in use. */
  #refresh(): void {
    this.#done.clear();
    this.#enqueue(() => this.#sweep(0));
    this.#enqueue(() => this.#scan(0));
  }

  /** Whether a page of an earlier build may ask for a file, and none of the next builds. */
  #accepts(filePath: string): boolean {
    if (filePath.endsWith('/') || mediaTypeOf(filePath).startsWith('text/html')) return false;
    return this.#static.mayHaveHash(filePath) || this.#isFixed(filePath);
  }

  /** Whether a file never changes under its name, so that its copy is right forever. */
  #isFixed(filePath: string): boolean {
    return isImmutable(this.#static.cacheControl(filePath));
  }

  /** Whether a path is that of a script or style of some build: no page and no other handler is the answer to it. */
  isMissingScript(urlPath: string): boolean {
    try {
      return SCRIPT.test(mediaTypeOf(urlPath)) && this.#accepts(urlPath);
    } catch {
      // The function of the option `cacheControl` failed, which the load of a file reports.
      return false;
    }
  }

  owns({ uncompressed: { path } }: LoadedFile): boolean {
    return path.startsWith(this.root.path + sep);
  }

  /** Keeps a file of the build that was loaded, or finds the copy of one that the build does not have. */
  async afterLoad(urlPath: string, result: LoadResult, options: LoadOptions): Promise<LoadResult> {
    if (result.kind === 'not-found') return (await this.#find(urlPath, options)) ?? result;
    if (result.kind !== 'file') return result;
    const { path, metadata, version } = result.uncompressed;
    if (metadata.type.startsWith('text/html')) this.#planScan();
    else if (path === this.#build.pathOf(urlPath) && this.#accepts(urlPath))
      this.#enqueue(() => this.#keep(urlPath, version));
    return result;
  }

  async #find(urlPath: string, options: LoadOptions): Promise<LoadedFile | undefined> {
    if (!this.#accepts(urlPath)) return undefined;
    const result = await loadFile(this.root, urlPath, this.#static, options).catch(() => undefined);
    if (result?.kind !== 'file') return undefined;
    const { path, version } = result.uncompressed;
    let usedAt = Number(version.mtimeNs / 1_000_000n);
    if (this.#isExpired(usedAt)) return undefined;
    const isCurrent = (): boolean => {
      if (Date.now() - usedAt > this.#touchAfter()) {
        usedAt = Date.now();
        this.#enqueue(() => touch(path));
      }
      if (performance.now() - this.#sweptAt > HOUR) this.#enqueue(() => this.#sweep(0));
      return true;
    };
    isCurrent();
    const missing = { path: this.#build.pathOf(urlPath), version: undefined };
    return {
      ...result,
      dependencies: [missing, ...result.dependencies],
      watched: [...result.watched, { isCurrent }],
    };
  }

  #isExpired(usedAt: number): boolean {
    return Date.now() - usedAt > this.#settings.days * DAY;
  }

  #touchAfter(): number {
    return Math.min(DAY, (this.#settings.days * DAY) / 8);
  }

  /** Runs tasks one after the other. Their errors are reported: serving goes on without new copies. */
  #enqueue(task: () => Promise<void>): void {
    this.#work = this.#work
      .then(task)
      .catch((error: unknown) => this.#report(error, this.#settings.directory));
  }

  #report(error: unknown, path: string): void {
    // Without the name of the temporary file, so that equal problems are reported once.
    const reason = error instanceof Error ? error.message.replace(/, \w+ '.*/, '') : String(error);
    warn(new Error(`files of this build are not kept in ${path}: ${reason}`, { cause: error }));
  }

  /** A new page may be that of a new build. */
  #planScan(): void {
    if (this.#isScanPlanned) return;
    this.#isScanPlanned = true;
    const start = (): void => {
      this.#isScanPlanned = false;
      this.#enqueue(() => this.#scan(QUIET_MS));
    };
    setTimeout(start, QUIET_MS).unref();
  }

  async #scan(quietMs: number): Promise<void> {
    for await (const { path, version } of walkFiles(this.#build, this.#static)) {
      if (!this.#accepts(path)) continue;
      const changedAt = Number(
        (version.ctimeNs > version.mtimeNs ? version.ctimeNs : version.mtimeNs) / 1_000_000n,
      );
      if (Math.abs(Date.now() - changedAt) < quietMs) this.#planScan();
      else await this.#keep(path, version);
    }
  }

  async #keep(filePath: string, version: FileVersion): Promise<void> {
    const id = versionId(version);
    if (this.#done.get(filePath) === id) return;
    const path = this.#build.pathOf(filePath);
    const source = await this.#build.open(path, version).catch(() => undefined);
    if (source?.kind !== 'opened') return;
    try {
      const isKept = await this.#copy(filePath, Number(version.size), source);
      if (isKept) this.#done.set(filePath, id);
    } catch (error) {
      if (UNWRITABLE.has(codeOf(error) ?? '')) throw error;
      this.#report(error, join(this.#settings.directory, filePath));
    } finally {
      source.close();
    }
  }

  async #copy(filePath: string, size: number, source: OpenedFile): Promise<boolean> {
    const target = this.root.pathOf(filePath);
    if (await this.#exists(filePath, source)) return true;
    if (this.#bytes + size > this.#settings.maxBytes) await this.#sweep(size);
    if (this.#bytes + size > this.#settings.maxBytes) {
      warn(
        new Error(
          `option "keep.maxBytes" is less than the files of this build need: ${filePath} is not kept`,
        ),
      );
      return false;
    }
    const temporary = join(this.#settings.directory, `${TEMPORARY}${randomBytes(9).toString('hex')}`);
    await mkdir(dirname(target), { recursive: true });
    try {
      if (!(await write(temporary, source))) return false;
      if (!this.#isFixed(filePath)) await rename(temporary, target);
      else if (!(await publish(temporary, target))) return await this.#exists(filePath, source);
      this.#bytes += size;
    } finally {
      await unlink(temporary).catch(() => undefined);
    }
    debug.static('kept %s', filePath);
    return true;
  }

  /** Whether there is a copy. That of an immutable file is never replaced: browsers have its bytes under the same name. */
  async #exists(filePath: string, source: OpenedFile): Promise<boolean> {
    const path = this.root.pathOf(filePath);
    const found = await this.root.stat(path);
    if (found === undefined) return false;
    const size = Number(found.version.size);
    const hash =
      found.kind === 'file'
        ? await withOpen(this.root, path, found.version, (copy) => copy.hash(size))
        : undefined;
    const before = await source.version();
    const isSame =
      hash !== undefined && before?.size === found.version.size && hash === (await source.hash(size));
    if (!isSame && !this.#isFixed(filePath)) return false;
    if (!isSame)
      warn(
        new Error(`${filePath} has other bytes than its copy in ${path}; an immutable file needs a new name`),
      );
    else if (Date.now() - Number(found.version.mtimeNs / 1_000_000n) > this.#touchAfter()) await touch(path);
    return true;
  }

  /** Deletes copies that were not used for long, and the least recently used ones until `needed` bytes are free. */
  async #sweep(needed: number): Promise<void> {
    this.#sweptAt = performance.now();
    const kept: Kept[] = [];
    for await (const { path, name, version } of walkFiles(this.root, this.#static)) {
      // Other files are not ours to delete: somebody has put them there, or the directory is a wrong one.
      if (name.startsWith(TEMPORARY) || !this.#accepts(path)) continue;
      kept.push({ path, size: Number(version.size), usedAt: Number(version.mtimeNs / 1_000_000n) });
    }
    kept.sort((a, b) => a.usedAt - b.usedAt);
    this.#bytes = kept.reduce((sum, { size }) => sum + size, 0);
    for (const { path, size, usedAt } of kept) {
      const isTooMuch = this.#bytes + needed > this.#settings.maxBytes;
      if (!isTooMuch && !this.#isExpired(usedAt)) break;
      const inBuild = await this.#build.stat(this.#build.pathOf(path));
      if (inBuild?.kind === 'file') {
        if (this.#isExpired(usedAt)) await touch(this.root.pathOf(path));
        continue;
      }
      await unlink(this.root.pathOf(path)).catch(() => undefined);
      this.#bytes -= size;
    }
    await removeTemporary(this.#settings.directory);
  }
}

/** Writes a new file that is complete on the disk; false if its source has changed meanwhile. */
async function write(path: string, source: OpenedFile): Promise<boolean> {
  const handle = await open(path, 'wx', 0o644);
  try {
    const before = await source.version();
    for await (const chunk of source.chunks()) await handle.appendFile(chunk);
    const after = await source.version();
    if (before === undefined || after === undefined || !sameContent(before, after)) return false;
    // After a power failure, a file that was renamed before its bytes were written would be empty.
    await handle.sync();
    return true;
  } finally {
    await handle.close();
  }
}

/**
 * Gives a file its name; false if another process has kept this name meanwhile. A file system without links (FAT, some
 * network shares) cannot do both in one step.
 */
async function publish(temporary: string, target: string): Promise<boolean> {
  try {
    await link(temporary, target);
  } catch (error) {
    if (codeOf(error) === 'EEXIST' || (await stat(target).catch(() => undefined)) !== undefined) return false;
    await rename(temporary, target);
  }
  return true;
}

/** Notes a use. A directory that is read-only has only the times at which its files were kept. */
async function touch(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now).catch((error: unknown) =>
    debug.static('cannot note the use of %s: %s', path, error),
  );
}

/** Deletes what a killed process has left. */
async function removeTemporary(directory: string): Promise<void> {
  for (const name of await readdir(directory).catch(() => [])) {
    if (!name.startsWith(TEMPORARY)) continue;
    const path = join(directory, name);
    const stats = await stat(path).catch(() => undefined);
    if (stats !== undefined && Date.now() - stats.mtimeMs > HOUR) await unlink(path).catch(() => undefined);
  }
}
