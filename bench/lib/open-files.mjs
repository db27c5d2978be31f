import { readdirSync, readlinkSync } from 'node:fs';

/** Returns what the descriptors of this process refer to: paths of files, and names of other objects. */
export function openFiles() {
  return readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return '';
    }
  });
}
