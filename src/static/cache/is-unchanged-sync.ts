import { statSync } from 'node:fs';
import { sameVersion } from '../disk/file-version.ts';
import type { Dependency } from '../file/resolve-file.ts';

/** Returns true when a file has not changed, and false when the thread pool has to check it. */
export type UnchangedCheck = () => boolean;

const OPTIONS = { bigint: true, throwIfNoEntry: false } as const;

/**
 * Prepares a check that runs on the event loop. When the kernel has the inode in memory, a synchronous stat takes less of
 * the event loop's time than handing it to the thread pool and receiving the result.
 *
 * @param localDevice - the device whose files may be checked this way; undefined if there is none
 * @returns undefined when a dependency is on another device
 */
export function prepareUnchangedCheck(
  dependencies: readonly Dependency[],
  localDevice: bigint | undefined,
): UnchangedCheck | undefined {
  if (localDevice === undefined) return undefined;
  const isElsewhere = ({ version }: Dependency): boolean =>
    version !== undefined && version.dev !== localDevice;
  if (dependencies.some(isElsewhere)) return undefined;
  const checks = dependencies.map(checkOf);
  const [only] = checks;
  return checks.length === 1 ? only : () => checks.every((isUnchanged) => isUnchanged());
}

function checkOf({ path, version }: Dependency): UnchangedCheck {
  return () => {
    try {
      const stats = statSync(path, OPTIONS);
      return stats === undefined || version === undefined ? stats === version : sameVersion(version, stats);
    } catch {
      // The check in the thread pool handles the error.
      return false;
    }
  };
}
