import { statfsSync, statSync } from 'node:fs';

// What Linux calls the file systems whose inodes it keeps in its own memory, on a disk of this machine or on none.
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
 * Whether a `stat` of a file seen before takes microseconds, as the kernel answers it from memory. Not so on a network
 * (NFS, SMB), in another process (FUSE) or another machine (9p, virtiofs); what is not known counts as not so.
 */
export function isKernelCached(type: number, platform: NodeJS.Platform): boolean {
  return platform === 'linux' && KERNEL_CACHED.has(type);
}

/** The device that a directory is on, when its file system is kernel-cached. */
export function localDeviceOf(directory: string): bigint | undefined {
  try {
    if (!isKernelCached(statfsSync(directory).type, process.platform)) return undefined;
    return statSync(directory, { bigint: true }).dev;
  } catch {
    return undefined;
  }
}
