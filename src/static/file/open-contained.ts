import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises';
import { codeOf } from './file-errors.ts';
import { type OpenFileVersion, sameVersion } from './file-version.ts';

// Windows has neither flag. With O_NONBLOCK, opening a FIFO that has replaced the file does not wait for a writer.
const NOFOLLOW = constants.O_NOFOLLOW ?? 0;
const NONBLOCK = constants.O_NONBLOCK ?? 0;

/**
 * Opens a path that had no symbolic link a moment ago. O_NOFOLLOW protects the last segment only, therefore the path of
 * the open descriptor is compared: a directory that was replaced by a link is detected before the first byte is read.
 * Undefined: the path has changed and must be resolved again.
 */
export async function openContained(realPath: string): Promise<FileHandle | undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(realPath, constants.O_RDONLY | NOFOLLOW | NONBLOCK);
    if (await isOpenAt(handle, realPath)) return handle;
  } catch (error) {
    await handle?.close();
    if (meansPathChanged(error)) return undefined;
    throw error;
  }
  await handle.close();
  return undefined;
}

/** ELOOP and EMLINK: the last segment has become a link; ENOENT and ENOTDIR: it was deleted or moved. */
function meansPathChanged(error: unknown): boolean {
  return ['ELOOP', 'EMLINK', 'ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '');
}

async function isOpenAt(handle: FileHandle, realPath: string): Promise<boolean> {
  if (process.platform === 'linux') {
    const actual = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => undefined);
    // A file that was deleted after it was opened was still at this path when it was opened.
    if (actual !== undefined) return actual === realPath || actual === `${realPath} (deleted)`;
  }
  const opened = await handle.stat({ bigint: true });
  const atPath = await lstat(realPath, { bigint: true });
  return sameVersion(opened, atPath) && (await realpath(realPath)) === realPath;
}

/** The version of an open file; undefined when it is not a regular file. */
export async function openFileVersion(handle: FileHandle): Promise<OpenFileVersion | undefined> {
  const stats = await handle.stat({ bigint: true });
  return stats.isFile() ? stats : undefined;
}
