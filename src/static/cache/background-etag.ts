import { sameContent, sameVersion } from '../disk/file-version.ts';
import { etagOfFile } from '../disk/hash.ts';
import { openRealPath } from '../disk/open-inside-root.ts';
import type { LoadedFile } from '../file/loaded-file.ts';
import { etagForCoding, type Representation } from '../file/representation.ts';
import type { StaticSettings } from '../options.ts';
import type { CacheEntry } from './entry.ts';

/**
 * Hashes files that are too large to be hashed before their first response, one at a time and slice by slice.
 * Until the ETag is ready, responses have Last-Modified only. Hashing stops when the file changes or leaves
 * the cache. Files over `maxHashBytes` get no ETag.
 */
export function createBackgroundEtags(
  settings: StaticSettings,
): (entry: CacheEntry, file: LoadedFile) => void {
  const queue: [CacheEntry, LoadedFile][] = [];
  let isRunning = false;
  const needsEtag = ({ tag, metadata }: Representation): boolean =>
    tag === undefined && metadata.size <= settings.maxHashBytes;

  async function run(): Promise<void> {
    isRunning = true;
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [entry, file] = next;
      const isWanted = (): boolean => entry.file === file;
      for (const representation of [file.uncompressed, ...file.precompressed]) {
        if (needsEtag(representation)) await addEtag(representation, isWanted);
      }
    }
    isRunning = false;
  }

  return (entry, file) => {
    if (settings.etag !== 'content' || file.isRacilyClean) return;
    if (![file.uncompressed, ...file.precompressed].some(needsEtag)) return;
    queue.push([entry, file]);
    // `run` does not reject: a file that cannot be read stays without an ETag.
    if (!isRunning) run().catch(() => {});
  };
}

async function addEtag(representation: Representation, isWanted: () => boolean): Promise<void> {
  const etag = await hashVersion(representation, isWanted).catch(() => undefined);
  if (etag !== undefined) representation.tag = etagForCoding(etag, representation.metadata.coding);
}

/**
 * Computes the ETag of the version that the representation describes; undefined when the file has changed.
 */
async function hashVersion(
  { realPath, version, metadata }: Representation,
  isWanted: () => boolean,
): Promise<string | undefined> {
  const file = await openRealPath(realPath);
  if (file === undefined) return undefined;
  try {
    const before = await file.version();
    if (before === undefined || !sameVersion(version, before)) return undefined;
    const etag = await etagOfFile(file.fd, metadata.size, isWanted);
    const after = await file.version();
    return after !== undefined && sameContent(before, after) ? etag : undefined;
  } finally {
    file.close();
  }
}
