import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises';
import { codeOf } from './file-errors.ts';
import { type OpenIdentity, sameVersion } from './file-version.ts';

// Neither flag exists on Windows. A FIFO swapped in would make a blocking open wait for a writer.
const NOFOLLOW = constants.O_NOFOLLOW ?? 0;
const NONBLOCK = constants.O_NONBLOCK ?? 0;

/**
 * Opens a path that had no symbolic link in it a moment ago. O_NOFOLLOW guards its last segment only, so the descriptor
 * itself is asked where it led: a directory that was swapped for a link in between is noticed before the first byte.
 * Undefined: the path has changed, look again.
 */
export async function openReal(realPath: string): Promise<FileHandle | undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(realPath, constants.O_RDONLY | NOFOLLOW | NONBLOCK);
    if (await leadsTo(handle, realPath)) return handle;
  } catch (error) {
    await handle?.close();
    if (isSwap(error)) return undefined;
    throw error;
  }
  await handle.close();
  return undefined;
}

/** ELOOP and EMLINK: the last segment is a link now; ENOENT and ENOTDIR: it has gone. */
function isSwap(error: unknown): boolean {
  return ['ELOOP', 'EMLINK', 'ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '');
}

async function leadsTo(handle: FileHandle, realPath: string): Promise<boolean> {
  if (process.platform === 'linux') {
    const actual = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => undefined);
    // Taken away since it was opened: it was there when it was.
    if (actual !== undefined) return actual === realPath || actual === `${realPath} (deleted)`;
  }
  const opened = await handle.stat({ bigint: true });
  const there = await lstat(realPath, { bigint: true });
  return sameVersion(opened, there) && (await realpath(realPath)) === realPath;
}

/** The version of the file that is open, or undefined when it is no regular file. */
export async function versionOf(handle: FileHandle): Promise<OpenIdentity | undefined> {
  const found = await handle.stat({ bigint: true });
  return found.isFile() ? found : undefined;
}
