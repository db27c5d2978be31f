import { randomUUID } from 'node:crypto';
import { constants, open, unlink } from 'node:fs';
import { join } from 'node:path';

/**
 * Linux's `__O_TMPFILE`, for which Node has no constant; the kernel requires it together with O_DIRECTORY.
 */
const TMPFILE = 0o20000000 | constants.O_DIRECTORY | constants.O_RDWR;
/**
 * libuv's UV_FS_O_TEMPORARY: Windows deletes the file when its last handle closes, however the process ends.
 */
const DELETE_ON_CLOSE = 0x40 | constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
const EXCLUSIVE = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
const OWNER_ONLY = 0o600;

type OnOpened = (error: Error | null, fd: number) => void;

/** Opens a temporary file without a name, which the system deletes when it is closed, even after SIGKILL. */
export function openUnlinkedTempFile(directory: string, opened: OnOpened): void {
  if (process.platform === 'win32') open(randomPath(directory), DELETE_ON_CLOSE, OWNER_ONLY, opened);
  else if (process.platform === 'linux') openTmpfile(directory, opened);
  else openThenUnlink(directory, opened);
}

function openTmpfile(directory: string, opened: OnOpened): void {
  open(directory, TMPFILE, OWNER_ONLY, (error, fd) => {
    // Some file systems do not support O_TMPFILE (NFS, old overlays).
    if (error !== null) openThenUnlink(directory, opened);
    else opened(null, fd);
  });
}

/** Used on other platforms. The file has an unguessable name, which exists only between two system calls. */
export function openThenUnlink(directory: string, opened: OnOpened): void {
  const path = randomPath(directory);
  open(path, EXCLUSIVE, OWNER_ONLY, (error, fd) => {
    if (error !== null) opened(error, -1);
    else unlink(path, () => opened(null, fd));
  });
}

function randomPath(directory: string): string {
  return join(directory, `espalier-${randomUUID()}`);
}
