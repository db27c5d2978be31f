import { statSync } from 'node:fs';
import { sameVersion } from '../file/file-version.ts';
import type { Dependency } from '../file/resolve-file.ts';

/** Whether everything that led to an entry surely is as it was. False: unknown, to be looked at off the event loop. */
export type Recheck = () => boolean;

const OPTIONS = { bigint: true, throwIfNoEntry: false } as const;

/**
 * Prepares looks on the event loop: for a file seen before, on a kernel-cached file system, such a look takes less of the
 * loop's time than handing it to a thread and taking the result back.
 *
 * @param device - the one whose files may be looked at so; undefined: none
 * @returns undefined when something lies elsewhere
 */
export function recheckOf(
  dependencies: readonly Dependency[],
  device: bigint | undefined,
): Recheck | undefined {
  if (device === undefined) return undefined;
  const isElsewhere = ({ identity }: Dependency): boolean =>
    identity !== undefined && identity.dev !== device;
  if (dependencies.some(isElsewhere)) return undefined;
  const checks = dependencies.map(checkOf);
  const [only] = checks;
  return checks.length === 1 ? only : () => checks.every((isUnchanged) => isUnchanged());
}

function checkOf({ path, identity }: Dependency): Recheck {
  return () => {
    try {
      const now = statSync(path, OPTIONS);
      return now === undefined || identity === undefined ? now === identity : sameVersion(identity, now);
    } catch {
      // What is wrong with it shows when a thread looks.
      return false;
    }
  };
}
