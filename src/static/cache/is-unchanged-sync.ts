import { statSync } from 'node:fs';
import { sameVersion } from '../disk/file-version.ts';
import type { Dependency } from '../file/resolve-file.ts';

const OPTIONS = { bigint: true, throwIfNoEntry: false } as const;

/**
 * Whether the event loop may check a file. When the kernel has the inode in memory, a synchronous stat takes
 * less of the event loop's time than handing it to the thread pool and receiving the result.
 *
 * @param localDevice - the device whose files may be checked this way; undefined if there is none
 */
export function canCheckSync(dependencies: readonly Dependency[], localDevice: bigint | undefined): boolean {
  if (localDevice === undefined) return false;
  return dependencies.every(({ version }) => version === undefined || version.dev === localDevice);
}

/** Returns true when a file has not changed, and false when the thread pool has to check it. */
export function areUnchangedSync(dependencies: readonly Dependency[]): boolean {
  try {
    for (const { path, version } of dependencies) {
      const stats = statSync(path, OPTIONS);
      if (stats === undefined || version === undefined) {
        if (stats !== version) return false;
      } else if (!sameVersion(version, stats)) return false;
    }
    return true;
  } catch {
    // The check in the thread pool handles the error.
    return false;
  }
}
