import { fstat, type Stats } from 'node:fs';
import { promisify } from 'node:util';
import { type FileVersion, fileVersionOf, isRacilyClean, sameContent } from '../disk/file-version.ts';
import { etagOfBytes, etagOfFile, etagOfVersion, readAndHash, readBytes } from '../disk/hash.ts';
import type { ReadableFile } from '../disk/open-inside-root.ts';
import type { StaticSettings } from '../options.ts';
import type { CodingFactory } from './loaded-file.ts';

const fstatAsync = promisify(fstat);

/** The settings for loading a file. */
export interface LoadOptions {
  /** Whether the file is requested so often that a large body is cached too. */
  readonly isPopular: boolean;
  /** Creates codings of the file. */
  readonly codingFactory?: CodingFactory | undefined;
}

/** One version of a file, read while it did not change. */
export interface Snapshot {
  readonly version: FileVersion;
  readonly body: Buffer | undefined;
  readonly etag: string | undefined;
  /** The ETag from the bytes, to identify the content for compression; undefined if they were not hashed. */
  readonly contentEtag: string | undefined;
  readonly stats: Stats | undefined;
  readonly isRacilyClean: boolean;
}

/**
 * Reads one version of an open file, with its bytes when it is small; undefined when the file changed
 * meanwhile.
 */
export async function takeSnapshot(
  file: ReadableFile,
  settings: StaticSettings,
  options: LoadOptions,
): Promise<Snapshot | 'not-a-file' | undefined> {
  const before = await file.version();
  if (before === undefined) return 'not-a-file';
  const snapshot = await readVersion(file.fd, before, settings, options);
  const after = await file.version();
  return snapshot !== undefined && after !== undefined && sameContent(before, after) ? snapshot : undefined;
}

async function readVersion(
  fd: number,
  version: FileVersion,
  settings: StaticSettings,
  options: LoadOptions,
): Promise<Snapshot | undefined> {
  const size = Number(version.size);
  const racilyClean = isRacilyClean(version, Date.now());
  const stats = settings.setHeaders === undefined ? undefined : await fstatAsync(fd);
  const common = { version: fileVersionOf(version), stats, isRacilyClean: racilyClean };
  const isCached = size <= maxBodyBytes(settings, options);
  if (settings.etag !== 'content') {
    const etag = settings.etag === 'stat' ? etagOfVersion(version, { weak: racilyClean }) : undefined;
    if (!isCached) {
      const isHashed =
        options.codingFactory !== undefined && !racilyClean && size <= settings.maxEagerHashBytes;
      const contentEtag = isHashed ? await etagOfFile(fd, size) : undefined;
      return { ...common, body: undefined, etag, contentEtag };
    }
    const body = await readBytes(fd, size);
    const isHashed = settings.precompressed.length > 0 || options.codingFactory !== undefined;
    return body && { ...common, body, etag, contentEtag: isHashed ? await etagOfBytes(body) : undefined };
  }
  if (isCached) {
    const content = await readAndHash(fd, size);
    return content && { ...common, ...content, contentEtag: content.etag };
  }
  // Another write could leave the timestamps of a racily clean file unchanged: the response might stream
  // other bytes than the hashed bytes.
  if (size > settings.maxEagerHashBytes || racilyClean) {
    return { ...common, body: undefined, etag: undefined, contentEtag: undefined };
  }
  const etag = await etagOfFile(fd, size);
  return etag === undefined ? undefined : { ...common, body: undefined, etag, contentEtag: etag };
}

function maxBodyBytes({ cache, maxEagerBodyBytes }: StaticSettings, { isPopular }: LoadOptions): number {
  return Math.min(isPopular ? cache.maxFileBytes : maxEagerBodyBytes, cache.maxBytes ?? Infinity);
}
