import { readdirSync, readlinkSync } from 'node:fs';

/** Counts the descriptors of this process that belong to a file, or to the files in a folder. */
export function descriptorsIn(path: string): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(path);
    } catch {
      return false;
    }
  }).length;
}
