import type { Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { StaticSettings } from '../options.ts';
import { type FileVersion, fileVersionOf, isRacilyClean, sameContent } from './file-version.ts';
import { etagOfFile, etagOfVersion, readAndHash, readBytes } from './hash.ts';
import { openContained, openFileVersion } from './open-contained.ts';

/** One version of a file, read while it did not change. */
export interface Snapshot {
  readonly version: FileVersion;
  readonly body: Buffer | undefined;
  readonly etag: string | undefined;
  readonly stats: Stats | undefined;
  readonly isRacilyClean: boolean;
}

/** Reads one version of a file, with its bytes when it is small; undefined when the file changed meanwhile. */
export async function takeSnapshot(
  realPath: string,
  settings: StaticSettings,
): Promise<Snapshot | 'not-a-file' | undefined> {
  const handle = await openContained(realPath);
  if (handle === undefined) return undefined;
  try {
    const before = await openFileVersion(handle);
    if (before === undefined) return 'not-a-file';
    const snapshot = await readVersion(handle, before, settings);
    const after = await openFileVersion(handle);
    return snapshot !== undefined && after !== undefined && sameContent(before, after) ? snapshot : undefined;
  } finally {
    await handle.close();
  }
}

async function readVersion(
  handle: FileHandle,
  version: FileVersion,
  settings: StaticSettings,
): Promise<Snapshot | undefined> {
  const size = Number(version.size);
  const racilyClean = isRacilyClean(version, Date.now());
  const stats = settings.setHeaders === undefined ? undefined : await handle.stat();
  const common = { version: fileVersionOf(version), stats, isRacilyClean: racilyClean };
  if (settings.etag !== 'content') {
    const etag = settings.etag === 'stat' ? etagOfVersion(version, { weak: racilyClean }) : undefined;
    const body = fitsInCache(size, settings) ? await readBytes(handle.fd, size) : undefined;
    return body === undefined && fitsInCache(size, settings) ? undefined : { ...common, body, etag };
  }
  if (fitsInCache(size, settings)) {
    const content = await readAndHash(handle.fd, size);
    return content && { ...common, ...content };
  }
  // Another write could leave the timestamps of a racily clean file unchanged: the response might stream other bytes
  // than those that were hashed.
  if (size > settings.maxEagerHashBytes || racilyClean) {
    return { ...common, body: undefined, etag: undefined };
  }
  const etag = await etagOfFile(handle.fd, size);
  return etag === undefined ? undefined : { ...common, body: undefined, etag };
}

function fitsInCache(size: number, settings: StaticSettings): boolean {
  return size <= settings.cache.maxFileBytes && size <= settings.cache.maxBytes;
}
