import { sameContent, sameVersion } from '../disk/file-version.ts';
import { readBytes } from '../disk/hash.ts';
import { openRealPath } from '../disk/open-inside-root.ts';
import { inThread, type ThreadShare } from '../disk/thread-share.ts';
import type { Representation } from '../file/representation.ts';
import type { CacheSettings } from '../option-rules.ts';
import type { CacheEntry } from './entry.ts';
import type { FileCache } from './file-cache.ts';

/**
 * Reads the body of a large file into the cache in the background, if the file is requested often enough.
 * `threads` are those for a file system that may hang.
 */
export function fillBody(
  cache: FileCache,
  entry: CacheEntry,
  { representation, threads }: { representation: Representation; threads: ThreadShare | undefined },
  { maxFileBytes }: CacheSettings,
): void {
  if (representation.metadata.size > maxFileBytes || !cache.reserveLargeBody(entry, representation)) return;
  const settle = (body: Buffer | undefined): void => cache.settleLargeBody(entry, representation, body);
  // The error is reported when a response reads the file.
  inThread(threads, () => readVersion(representation)).then(settle, () => settle(undefined));
}

/** Reads the version that the representation describes; undefined when the file has changed. */
async function readVersion({ realPath, version, metadata }: Representation): Promise<Buffer | undefined> {
  const file = await openRealPath(realPath);
  if (file === undefined) return undefined;
  try {
    const before = await file.version();
    if (before === undefined || !sameVersion(version, before)) return undefined;
    const body = await readBytes(file.fd, metadata.size);
    const after = await file.version();
    return after !== undefined && sameContent(before, after) ? body : undefined;
  } finally {
    file.close();
  }
}
