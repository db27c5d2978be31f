import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { debug } from '../../logging/debug.ts';
import { readBytes } from '../disk/hash.ts';
import { openInsideRoot } from '../disk/open-inside-root.ts';
import type { RootDirectory } from '../disk/root-directory.ts';
import { statOrUndefined } from '../file/resolve-file.ts';

/** A file of one of the directories, whose bytes have the given SHA-256. */
export interface DictionaryFile {
  readonly root: RootDirectory;
  readonly hash: Buffer;
}

interface Entry {
  files: readonly DictionaryFile[];
  checkedAt: number;
}

// Entries of about 200 bytes each.
const MAX_ENTRIES = 1024;
// A new deployment may add a file.
const RECHECK_MS = 10_000;
// Hashing a slice blocks the event loop for less than a millisecond.
const SLICE = 256 * 1024;

/** The versions of files that may be dictionaries: those of the served directory and of previous builds. */
export class DictionaryFiles {
  readonly #roots: readonly RootDirectory[];
  readonly #maxFileBytes: number;
  readonly #schedule: (key: string, task: () => Promise<number>) => void;
  readonly #entries = new Map<string, Entry>();
  #isChecking = false;

  /** @param schedule - runs a task in the background, unless one with the same key is queued */
  constructor(
    roots: readonly RootDirectory[],
    maxFileBytes: number,
    schedule: (key: string, task: () => Promise<number>) => void,
  ) {
    this.#roots = roots;
    this.#maxFileBytes = maxFileBytes;
    this.#schedule = schedule;
  }

  /**
   * Finds the file with a path below a root and a SHA-256 in base64. Hashes new files in the background, so
   * the first call for a path returns undefined.
   */
  find(filePath: string, hash: string): DictionaryFile | undefined {
    const entry = this.#entries.get(filePath);
    if (entry === undefined || performance.now() - entry.checkedAt > RECHECK_MS) {
      this.#checkName(filePath);
    }
    return entry?.files.find((file) => file.hash.toString('base64') === hash);
  }

  /** Reads the bytes of a dictionary; undefined if they have changed. */
  async read(filePath: string, { root, hash }: DictionaryFile): Promise<Buffer | undefined> {
    const bytes = await this.#readFrom(root, filePath);
    return bytes !== undefined && (await sha256(bytes)).equals(hash) ? bytes : undefined;
  }

  /**
   * Schedules the hashing of a file that exists. Clients may announce any number of names, whose tasks would
   * keep other work waiting. Checks one name at a time: a file system that hangs keeps one thread.
   */
  #checkName(filePath: string): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const settle = (exists: boolean): void => {
      this.#isChecking = false;
      if (exists) this.#schedule(`dictionary ${filePath}`, () => this.#check(filePath));
      else this.#entries.delete(filePath);
    };
    this.#exists(filePath).then(settle, () => settle(false));
  }

  async #exists(filePath: string): Promise<boolean> {
    for (const root of this.#roots) {
      const stats = await statOrUndefined(root.join(filePath)).catch(() => undefined);
      if (stats?.isFile() === true) return true;
    }
    return false;
  }

  async #check(filePath: string): Promise<number> {
    const startedAt = performance.now();
    const files: DictionaryFile[] = [];
    for (const root of this.#roots) {
      const bytes = await this.#readFrom(root, filePath);
      if (bytes !== undefined) files.push({ root, hash: await sha256(bytes) });
    }
    if (this.#entries.size >= MAX_ENTRIES) this.#entries.clear();
    this.#entries.set(filePath, { files, checkedAt: performance.now() });
    return performance.now() - startedAt;
  }

  /** Reads a file inside a root; undefined if it does not exist or cannot be read. */
  async #readFrom(root: RootDirectory, filePath: string): Promise<Buffer | undefined> {
    const path = root.join(filePath);
    try {
      const stats = await statOrUndefined(path);
      if (stats?.isFile() !== true || stats.size > this.#maxFileBytes) return undefined;
      const file = await openInsideRoot(root, path, stats, { followSymlinks: false });
      if (file === undefined || 'kind' in file) return undefined;
      try {
        return await readBytes(file.fd, Number(stats.size));
      } finally {
        file.close();
      }
    } catch (error) {
      debug.static('cannot read the dictionary %s: %s', path, error);
      return undefined;
    }
  }
}

async function sha256(bytes: Buffer): Promise<Buffer> {
  const hash = createHash('sha256');
  for (let start = 0; start < bytes.length; start += SLICE) {
    hash.update(bytes.subarray(start, start + SLICE));
    if (bytes.length > SLICE) await setImmediate();
  }
  return hash.digest();
}
