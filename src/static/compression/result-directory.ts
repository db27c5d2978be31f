import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../../http/reply/system-error.ts';
import { warnOfSystem } from '../disk/warning.ts';
import type { CompressionResult } from './result-cache.ts';

const DIGEST_BYTES = 32;
// Milliseconds without writes after an error, for example when the disk is full.
const PAUSE_MS = 60_000;
// The names of results: an ETag and a coding with its level and library, and the start of a dictionary's hash.
// Other files are not ours, so they are neither counted nor deleted.
const RESULT = /^[\da-f]+-[\w-]{27}-(?:br|zstd|gzip|dcb|dcz)\d+\.[\w.]*(?:-[\w-]{12})?$/;
// Files that a process left behind when it was killed while it wrote them.
const TEMPORARY = /^\.(.+)\.[\da-f]{12}\.tmp$/;
const OLD_MS = 3_600_000;
// The share of the limit after which the directory is measured again: other processes write to it too.
const MEASURED_SHARE = 1 / 16;

/**
 * Results of compression in a directory, which several processes may share and which survives a restart. A
 * file contains a digest of its name and bytes, followed by the bytes. Files are written under another name
 * and then renamed.
 */
export class ResultDirectory {
  readonly #path: string;
  readonly #maxBytes: number;
  #bytes: Promise<number> | undefined;
  #bytesSinceMeasured = 0;
  #pausedUntil = 0;

  constructor(path: string, maxBytes: number) {
    this.#path = path;
    this.#maxBytes = maxBytes;
  }

  /** Returns a stored result; undefined if there is none, or if it is damaged. */
  async read(key: string): Promise<CompressionResult | undefined> {
    const name = fileNameOf(key);
    try {
      const file = await readFile(join(this.#path, name));
      const bytes = file.subarray(DIGEST_BYTES);
      if (!digestOf(name, bytes).equals(file.subarray(0, DIGEST_BYTES))) return undefined;
      return bytes.length === 0 ? 'useless' : bytes;
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') this.#warn('read', error);
      return undefined;
    }
  }

  /** Stores a result. An error is reported, and nothing is written for a minute. */
  async write(key: string, result: CompressionResult): Promise<void> {
    if (performance.now() < this.#pausedUntil) return;
    const name = fileNameOf(key);
    const bytes = result === 'useless' ? Buffer.alloc(0) : result;
    const temporary = join(this.#path, `.${name}.${randomBytes(6).toString('hex')}.tmp`);
    try {
      await this.#makeRoom(bytes.length + DIGEST_BYTES);
      await writeFile(temporary, Buffer.concat([digestOf(name, bytes), bytes]), { mode: 0o600, flag: 'wx' });
      await rename(temporary, join(this.#path, name));
    } catch (error) {
      this.#warn('write', error);
      this.#pausedUntil = performance.now() + PAUSE_MS;
      this.#bytes = undefined;
      await rm(temporary, { force: true }).catch(() => undefined);
    }
  }

  /** The message has no name of a file, so that it is not repeated for each one. */
  #warn(action: 'read' | 'write', cause: unknown): void {
    const reason = codeOf(cause) ?? String(cause);
    const result = 'bodies are compressed again after a restart';
    warnOfSystem(
      new Error(`cannot ${action} files of "compress.directory" (${this.#path}): ${reason}; ${result}`, {
        cause,
      }),
    );
  }

  /** Deletes the oldest files until `bytes` more are within the limit. */
  async #makeRoom(bytes: number): Promise<void> {
    this.#bytesSinceMeasured += bytes;
    if (this.#bytesSinceMeasured > this.#maxBytes * MEASURED_SHARE) this.#bytes = undefined;
    this.#bytes ??= this.#measure();
    let total = (await this.#bytes) + bytes;
    if (total > this.#maxBytes) {
      const files = await this.#list();
      total = bytes + files.reduce((sum, { size }) => sum + size, 0);
      for (const { path, size } of files) {
        if (total <= this.#maxBytes * 0.9) break;
        await rm(path, { force: true });
        total -= size;
      }
    }
    this.#bytes = Promise.resolve(total);
  }

  async #measure(): Promise<number> {
    await mkdir(this.#path, { recursive: true, mode: 0o700 });
    this.#bytesSinceMeasured = 0;
    const files = await this.#list();
    return files.reduce((sum, { size }) => sum + size, 0);
  }

  /** Lists the results, the oldest first, and deletes old temporary files. */
  async #list(): Promise<{ path: string; size: number }[]> {
    const files: { path: string; size: number; mtimeMs: number }[] = [];
    for (const name of await readdir(this.#path)) {
      const temporary = TEMPORARY.exec(name)?.[1];
      if (!RESULT.test(temporary ?? name)) continue;
      const path = join(this.#path, name);
      const stats = await stat(path).catch(() => undefined);
      if (stats === undefined || !stats.isFile()) continue;
      const { size, mtimeMs } = stats;
      if (temporary === undefined) files.push({ path, size, mtimeMs });
      else if (Date.now() - mtimeMs > OLD_MS) await rm(path, { force: true });
    }
    return files.sort((a, b) => a.mtimeMs - b.mtimeMs);
  }
}

/** Keys are ETags and codings: base64 and dots. */
function fileNameOf(key: string): string {
  return key
    .replaceAll('/', '_')
    .replaceAll('+', '-')
    .replace(/[^\w.-]/g, '');
}

function digestOf(name: string, bytes: Buffer): Buffer {
  return createHash('sha256').update(`${name}\n`).update(bytes).digest();
}
