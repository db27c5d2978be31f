import { sameContent, sameVersion } from '../disk/file-version.ts';
import { etagOfFile } from '../disk/hash.ts';
import { openRealPath } from '../disk/open-inside-root.ts';
import { inThread, mountThreads, type ThreadShare, type ThreadsOf } from '../disk/thread-share.ts';
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
  threadsOf: ThreadsOf,
): (entry: CacheEntry, file: LoadedFile) => void {
  const needsEtag = ({ tag, metadata }: Representation): boolean =>
    tag === undefined && metadata.size <= settings.maxHashBytes;
  const ofRoot = new HashQueue(needsEtag, undefined);
  // A mount that hangs does not keep the files of the root without ETags.
  const ofMounts = new HashQueue(needsEtag, mountThreads);
  return (entry, file) => {
    if (settings.etag !== 'content' || file.isRacilyClean) return;
    if (![file.uncompressed, ...file.precompressed].some(needsEtag)) return;
    const threads = threadsOf(entry.urlPath, file.uncompressed.version.dev);
    (threads === undefined ? ofRoot : ofMounts).add(entry, file);
  };
}

/** Files that wait until they are hashed. */
class HashQueue {
  readonly #needsEtag: (representation: Representation) => boolean;
  readonly #threads: ThreadShare | undefined;
  readonly #queue: [CacheEntry, LoadedFile][] = [];
  #isRunning = false;

  constructor(needsEtag: (representation: Representation) => boolean, threads: ThreadShare | undefined) {
    this.#needsEtag = needsEtag;
    this.#threads = threads;
  }

  add(entry: CacheEntry, file: LoadedFile): void {
    this.#queue.push([entry, file]);
    // `#run` does not reject: a file that cannot be read stays without an ETag.
    if (!this.#isRunning) this.#run().catch(() => {});
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      const [entry, file] = next;
      const isWanted = (): boolean => entry.file === file;
      for (const representation of [file.uncompressed, ...file.precompressed]) {
        if (!this.#needsEtag(representation)) continue;
        await inThread(this.#threads, () => addEtag(representation, isWanted));
      }
    }
    this.#isRunning = false;
  }
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
