import { close, closeSync, constants, fstat, fstatSync, open, openSync, readSync } from 'node:fs';
import { toError } from '../../http/reply/http-error.ts';
import { type FileVersion, type OpenFileVersion, sameContent, sameVersion } from './file-version.ts';
import type { ThreadShare } from './thread-share.ts';

/** An open file of a known version. */
export class OpenFile {
  readonly fd: number;
  readonly version: OpenFileVersion;
  /** The threads for operations on the file, if its file system may hang. */
  readonly threads: ThreadShare | undefined;
  readonly #close: (fd: number, threads: ThreadShare | undefined) => void;
  #isClosed = false;

  constructor(
    fd: number,
    version: OpenFileVersion,
    close: (fd: number, threads: ThreadShare | undefined) => void,
    threads?: ThreadShare,
  ) {
    this.fd = fd;
    this.version = version;
    this.#close = close;
    this.threads = threads;
  }

  /** Whether the file is on a local disk, where `fstat` and `close` take microseconds. */
  get isLocal(): boolean {
    return this.#close === closeOnLoop;
  }

  /** Closes the file once: the number of the descriptor may belong to another file afterwards. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#close(this.fd, this.threads);
  }
}

/** A file that was found inside the root. */
interface KnownFile {
  readonly realPath: string;
  readonly version: FileVersion;
}

const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Opens a file in the thread pool, and checks that it still has the expected version. The callback receives
 * neither an error nor a file when the version differs.
 */
export function openVersion(
  file: KnownFile,
  threads: ThreadShare | undefined,
  done: (error: unknown, file?: OpenFile) => void,
): void {
  if (threads === undefined) {
    openInPool(file, threads, done);
    return;
  }
  threads.run(() =>
    openInPool(file, threads, (error, opened) => {
      threads.release();
      done(error, opened);
    }),
  );
}

function openInPool(
  { realPath, version }: KnownFile,
  threads: ThreadShare | undefined,
  done: (error: unknown, file?: OpenFile) => void,
): void {
  open(realPath, FLAGS, (openError, fd) => {
    if (openError !== null) {
      done(openError);
      return;
    }
    fstat(fd, { bigint: true }, (error, stats) => {
      if (error === null && sameVersion(version, stats)) {
        done(undefined, new OpenFile(fd, stats, closeInPool, threads));
        return;
      }
      closeInPool(fd, threads);
      done(error ?? undefined);
    });
  });
}

/** Opens a file on the event loop. Returns undefined when the version differs. */
export function openVersionSync({ realPath, version }: KnownFile): OpenFile | undefined {
  const fd = openSync(realPath, FLAGS);
  try {
    const stats = fstatSync(fd, { bigint: true });
    if (sameVersion(version, stats)) return new OpenFile(fd, stats, closeOnLoop);
  } catch (error) {
    closeOnLoop(fd);
    throw error;
  }
  closeOnLoop(fd);
  return undefined;
}

/** Fills a buffer with the start of a file on the event loop. Returns false when the file changed meanwhile. */
export function readVersionSync({ fd, version }: OpenFile, body: Buffer): boolean {
  let filled = 0;
  while (filled < body.length) {
    const bytesRead = readSync(fd, body, filled, body.length - filled, filled);
    if (bytesRead === 0) return false;
    filled += bytesRead;
  }
  return sameContent(version, fstatSync(fd, { bigint: true }));
}

/**
 * Stats an open file on the event loop. It fails when the kernel has shut the file system down after a failure of
 * its disk.
 */
export function statOnLoop(
  fd: number,
  done: (error: Error | null, version: OpenFileVersion | undefined) => void,
): void {
  let stats: OpenFileVersion | undefined;
  let failure: Error | null = null;
  try {
    stats = fstatSync(fd, { bigint: true });
  } catch (error) {
    failure = toError(error);
  }
  done(failure, stats);
}

// Errors of `close` are ignored: the descriptor is freed even then.
function closeInPool(fd: number, threads: ThreadShare | undefined): void {
  if (threads === undefined) close(fd, () => {});
  else threads.run(() => close(fd, () => threads.release()));
}

function closeOnLoop(fd: number): void {
  try {
    closeSync(fd);
  } catch {}
}
