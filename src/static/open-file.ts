import { createHash } from 'node:crypto';
import {
  close,
  closeSync,
  constants,
  fstat,
  fstatSync,
  open,
  openSync,
  read,
  readSync,
  type Stats,
} from 'node:fs';
import { promisify } from 'node:util';
import { codeOf } from '../http/reply.ts';
import type { OpenedFile } from './files.ts';
import { etagFromDigest, SLICE } from './hash.ts';
import { type FileVersion, type OpenFileVersion, sameContent, sameVersion } from './version.ts';

// A link that has replaced the file is not followed, and opening a FIFO that has replaced it does not wait for a writer.
// Windows has neither flag.
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

// Bytes of one read.
const CHUNK = 64 * 1024;

const openAsync = promisify(open);
const fstatAsync = promisify(fstat);

/** A file that was opened to be read. The operations are synchronous where they take microseconds. */
export class OpenFile implements OpenedFile {
  readonly kind = 'opened';
  readonly isOnDisk = true;
  readonly fd: number;
  /** The path without symbolic links. */
  readonly realPath: string;
  /** Whether the file is on a local disk, where `fstat` and `close` take microseconds. */
  readonly isLocal: boolean;
  #isClosed = false;

  constructor(fd: number, realPath: string, isLocal: boolean) {
    this.fd = fd;
    this.realPath = realPath;
    this.isLocal = isLocal;
  }

  /** The current version; undefined when it is not a regular file. */
  async version(): Promise<OpenFileVersion | undefined> {
    const stats = this.isLocal
      ? fstatSync(this.fd, { bigint: true })
      : await fstatAsync(this.fd, { bigint: true });
    return stats.isFile() ? stats : undefined;
  }

  /** Reads exactly `size` bytes from the start of the file; undefined when the file has become shorter. */
  async read(size: number): Promise<Buffer | undefined> {
    // Does not use Node's shared pool: a small cached body would keep a whole pool slab in memory.
    const body = Buffer.allocUnsafeSlow(size);
    for (let filled = 0; filled < size; ) {
      const bytesRead = await readAsync(this.fd, body, filled, size - filled, filled);
      if (bytesRead === 0) return undefined;
      filled += bytesRead;
    }
    return body;
  }

  /**
   * Computes the ETag that `etagOfBytes` would return, slice by slice. Undefined when the file has become
   * shorter, or when `isWanted` returns false.
   */
  async hash(size: number, isWanted: () => boolean = () => true): Promise<string | undefined> {
    const hash = createHash('sha1');
    const slice = Buffer.allocUnsafeSlow(SLICE);
    for (let position = 0; position < size; ) {
      if (!isWanted()) return undefined;
      const bytesRead = await readAsync(this.fd, slice, 0, Math.min(SLICE, size - position), position);
      if (bytesRead === 0) return undefined;
      hash.update(slice.subarray(0, bytesRead));
      position += bytesRead;
    }
    return etagFromDigest(size, hash);
  }

  /** A `ReadStream` would close the descriptor when a pipeline fails. */
  async *chunks(): AsyncGenerator<Buffer, undefined> {
    for (let position = 0; ; ) {
      const buffer = Buffer.allocUnsafeSlow(CHUNK);
      const bytesRead = await readAsync(this.fd, buffer, 0, CHUNK, position);
      if (bytesRead === 0) return undefined;
      position += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  stats(): Promise<Stats> {
    return fstatAsync(this.fd);
  }

  /** Closes the file once: the number of the descriptor may belong to another file afterwards. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.isLocal) closeOnLoop(this.fd);
    else closeInPool(this.fd);
  }
}

// Errors of `close` are ignored: the descriptor is freed even then.
function closeInPool(fd: number): void {
  close(fd, () => {});
}

function closeOnLoop(fd: number): void {
  try {
    closeSync(fd);
  } catch {}
}

/** Opens a path in the thread pool; undefined if there is no file any more. */
export async function openOrUndefined(path: string): Promise<number | undefined> {
  try {
    return await openAsync(path, FLAGS);
  } catch (error) {
    // ELOOP and EMLINK: the last segment has become a link; ENOENT and ENOTDIR: it was deleted or moved.
    if (['ELOOP', 'EMLINK', 'ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return undefined;
    throw error;
  }
}

interface KnownFile {
  readonly realPath: string;
  readonly version: FileVersion;
}

/** An open file, with its version when it was opened. */
export interface OpenVersion {
  readonly file: OpenFile;
  readonly version: OpenFileVersion;
}

/**
 * Opens a file in the thread pool, and checks that it still has the expected version. The callback receives
 * neither an error nor a file when the version differs.
 */
export function openVersion(
  { realPath, version }: KnownFile,
  done: (error: unknown, opened?: OpenVersion) => void,
): void {
  open(realPath, FLAGS, (openError, fd) => {
    if (openError !== null) {
      done(openError);
      return;
    }
    fstat(fd, { bigint: true }, (error, stats) => {
      if (error === null && sameVersion(version, stats)) {
        done(undefined, { file: new OpenFile(fd, realPath, false), version: stats });
        return;
      }
      closeInPool(fd);
      done(error ?? undefined);
    });
  });
}

/** Opens a file on the event loop. Returns undefined when the version differs. */
export function openVersionSync({ realPath, version }: KnownFile): OpenVersion | undefined {
  const fd = openSync(realPath, FLAGS);
  try {
    const stats = fstatSync(fd, { bigint: true });
    if (sameVersion(version, stats)) return { file: new OpenFile(fd, realPath, true), version: stats };
  } catch (error) {
    closeOnLoop(fd);
    throw error;
  }
  closeOnLoop(fd);
  return undefined;
}

/** Fills a buffer with the start of a file on the event loop. Returns false when the file changed meanwhile. */
export function readVersionSync({ file: { fd }, version }: OpenVersion, body: Buffer): boolean {
  for (let filled = 0; filled < body.length; ) {
    const bytesRead = readSync(fd, body, filled, body.length - filled, filled);
    if (bytesRead === 0) return false;
    filled += bytesRead;
  }
  return sameContent(version, fstatSync(fd, { bigint: true }));
}

/**
 * Reads bytes of an open file into a buffer, and resolves to their number; 0 at the end. `promisify` is not used:
 * of `fs.read` it resolves to an object, but to the number if a tracer has replaced the function.
 */
function readAsync(
  fd: number,
  buffer: Buffer,
  offset: number,
  length: number,
  position: number,
): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, offset, length, position, (error, bytesRead) => {
      if (error) reject(error);
      else resolve(bytesRead);
    });
  });
}
