import { statfsSync, statSync } from 'node:fs';

// Linux file systems on a local disk or in memory, whose inodes the kernel caches.
const KERNEL_CACHED = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // xfs
  0x9123683e, // btrfs
  0xf2f52010, // f2fs
  0xca451a4e, // bcachefs
  0x01021994, // tmpfs
  0x858458f6, // ramfs
  0x794c7630, // overlayfs
  0x73717368, // squashfs
  0xe0f5e1e2, // erofs
]);

/**
 * Whether a repeated `stat` takes microseconds because the kernel caches the inode. False for network file
 * systems (NFS, SMB), FUSE, 9p and virtiofs, and for unknown types.
 */
export function isKernelCached(type: number, platform: NodeJS.Platform): boolean {
  return platform === 'linux' && KERNEL_CACHED.has(type);
}

/** The device of a directory on a kernel-cached file system; undefined for other file systems. */
export function localDeviceOf(directory: string): bigint | undefined {
  try {
    if (!isKernelCached(statfsSync(directory).type, process.platform)) return undefined;
    return statSync(directory, { bigint: true }).dev;
  } catch {
    return undefined;
  }
}
