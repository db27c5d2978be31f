import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A small disk in memory that can be full or read-only. */
export interface Disk {
  readonly path: string;
  remount(access: 'ro' | 'rw'): void;
  unmount(): void;
}

/** Mounts a disk; undefined if the process may not: root outside of containers may. */
function mount(size: string): Disk | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined;
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'espalier-disk-')));
  const run = (...args: string[]): boolean => spawnSync('mount', [...args, path]).status === 0;
  const disk: Disk = {
    path,
    remount: (access) => {
      if (!run('-o', `remount,${access}`)) throw new Error(`${path} cannot be mounted ${access}`);
    },
    unmount: () => {
      spawnSync('umount', ['-l', path]);
      rmdirSync(path);
    },
  };
  if (run('-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs')) return disk;
  rmdirSync(path);
  return undefined;
}

const paths: string[] = [];
// Servers of a test may still write to the path of a disk that is gone.
afterAll(() => {
  for (const path of paths) rmSync(path, { recursive: true, force: true });
});

/** Mounts a disk for a test of `withDisks`. */
export function mountDisk(size: string): Disk {
  const disk = mount(size);
  if (disk === undefined) throw new Error('this process may not mount a disk');
  paths.push(disk.path);
  return disk;
}

function ignored(): void {}
const probe = mount('64k');
probe?.unmount();
/** `it`, where the process may mount disks. */
export const withDisks: typeof it | typeof ignored = probe === undefined ? ignored : it;
