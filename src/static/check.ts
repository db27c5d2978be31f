import { setImmediate } from 'node:timers';
import {
  type CacheEntry,
  type FileCache,
  isPopular,
  type LoadedFile,
  type LoadResult,
  type Waiter,
} from './cache.ts';
import type { Files } from './files.ts';
import type { LoadOptions } from './load.ts';
import type { StaticSettings } from './options.ts';
import { etagForCoding, type Representation } from './representation.ts';
import { openRealPath } from './root.ts';
import type { Rules } from './rules.ts';
import { sameContent, sameOrAbsent, sameVersion } from './version.ts';

// Checks per turn of the event loop, which take about a millisecond when they are synchronous.
const MAX_PER_TURN = 256;
// Synchronous checks between two reads of the clock: one read costs a tenth of a check.
const CHUNK = 8;
// Milliseconds after which requests do not wait for a running check any more.
const STALLED_MS = 30_000;

/**
 * Coalesces checks of cache entries, as databases do with group commit. Requests for one path that arrive in
 * the same turn of the event loop share a check, which starts after the last of them arrived; requests that
 * arrive during a check share the next one. Therefore no response is older than its request, and a file is
 * checked, read and hashed once for all of them.
 */
export class Coalescer {
  readonly #context: CheckContext;
  #queued: CacheEntry[] = [];
  #isScheduled = false;
  readonly #pendingAsync: CacheEntry[] = [];
  #runningAsync = 0;

  constructor(context: CheckContext) {
    this.#context = context;
  }

  /** Checks the entry of a request, then calls its `onChecked`. */
  check(waiter: Waiter): void {
    const { entry } = waiter;
    if (entry.waiting === undefined) entry.waiting = [waiter];
    else entry.waiting.push(waiter);
    if (entry.state === 'idle' || isStalled(entry)) this.#enqueue(entry);
  }

  #release(entry: CacheEntry): void {
    entry.state = 'idle';
    entry.check = undefined;
    if (entry.waiting !== undefined) this.#enqueue(entry);
    else this.#context.cache.release(entry);
  }

  #enqueue(entry: CacheEntry): void {
    entry.state = 'queued';
    this.#queued.push(entry);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // The check phase follows the poll phase, in which all requests of this turn arrive.
    setImmediate(this.#checkBatch);
  }

  readonly #checkBatch = (isSameTurn = false): void => {
    this.#isScheduled = false;
    const batch = this.#queued;
    this.#queued = batch.length > MAX_PER_TURN ? batch.splice(MAX_PER_TURN) : [];
    if (this.#queued.length > 0) this.#schedule();
    // All checks run before all responses, which keeps the code of each step in the CPU caches.
    const unchanged: Waiter[] = [];
    if (!isSameTurn && this.#context.rules?.isUnchangedSync() === false) this.#pendingAsync.push(...batch);
    else for (let i = 0; i < batch.length; i += CHUNK) this.#checkChunk(batch.slice(i, i + CHUNK), unchanged);
    this.#startAsyncChecks();
    // A response that needs another entry, such as the page in another language, does not wait for the next turn.
    const isLast = !this.#isScheduled;
    this.#isScheduled = true;
    for (const waiter of unchanged) finishIsolated(waiter, undefined, waiter.entry.file);
    if (!isLast) return;
    this.#isScheduled = false;
    if (this.#queued.length > 0) this.#checkBatch(true);
  };

  /** Checks entries on the event loop, adds their requests to `unchanged`, and leaves the others to the thread pool. */
  #checkChunk(entries: readonly CacheEntry[], unchanged: Waiter[]): void {
    const { breaker } = this.#context;
    const startedAt = performance.now();
    let hasChecked = false;
    for (const entry of entries) {
      const isAllowed = entry.isCheckedSync && !entry.wantsBodies && breaker.allows(startedAt);
      hasChecked ||= isAllowed;
      if (isAllowed && isUnchangedSync(this.#context, entry, startedAt)) {
        entry.state = 'idle';
        for (const waiter of takeWaiting(entry)) unchanged.push(waiter);
      } else this.#pendingAsync.push(entry);
    }
    if (hasChecked) breaker.record(startedAt, performance.now());
  }

  #startAsyncChecks(): void {
    while (this.#runningAsync < this.#context.maxRunning) {
      const entry = this.#pendingAsync.shift();
      if (entry === undefined) return;
      this.#checkInThreadPool(entry);
    }
  }

  #checkInThreadPool(entry: CacheEntry): void {
    const waiters = takeWaiting(entry);
    const check = { startedAt: performance.now() };
    entry.state = 'checking';
    entry.check = check;
    this.#runningAsync++;
    const finish = (error: unknown, result: LoadResult | undefined): void => {
      this.#runningAsync--;
      // A later check has begun if this one stalled.
      if (entry.check === check) this.#release(entry);
      this.#startAsyncChecks();
      for (const waiter of waiters) finishIsolated(waiter, error, result);
    };
    revalidate(this.#context, entry).then(
      (result) => finish(undefined, result),
      (error: unknown) => finish(error, undefined),
    );
  }
}

/** Whether the running check has taken so long that requests do not wait for it: a store may have lost its connection. */
function isStalled({ state, check }: CacheEntry): boolean {
  return state === 'checking' && check !== undefined && performance.now() - check.startedAt > STALLED_MS;
}

function takeWaiting(entry: CacheEntry): Waiter[] {
  const waiters = entry.waiting ?? [];
  entry.waiting = undefined;
  return waiters;
}

/** Continues one request. An exception of its handlers must not leave the other requests without a response. */
function finishIsolated(waiter: Waiter, error: unknown, result: LoadResult | undefined): void {
  try {
    waiter.asyncScope.runInAsyncScope(waiter.onChecked, waiter, error, result);
  } catch (thrown) {
    queueMicrotask(() => {
      throw thrown;
    });
  }
}

export interface CheckContext {
  readonly files: Pick<Files, 'allowsSync' | 'isUnchanged' | 'isUnchangedSync'>;
  readonly cache: FileCache;
  /** Checked before the files of each batch: a deployment replaces both. */
  readonly rules?: Pick<Rules, 'isUnchangedSync' | 'refresh'> | undefined;
  readonly load: (urlPath: string, options: LoadOptions) => Promise<LoadResult>;
  /** Whether the symbolic links on the path still lead to the same place inside the root. */
  readonly stillResolves: (file: LoadedFile) => Promise<boolean>;
  readonly breaker: CircuitBreaker;
  /** Milliseconds for which the result of a check is valid. */
  readonly revalidateAfter: number;
  readonly onCached: (entry: CacheEntry, file: LoadedFile) => void;
  readonly maxRunning: number;
}

// Milliseconds after which the symbolic links on the path of a cached file are resolved again.
const PATH_VERIFIED_FOR = 60_000;

const isCurrent = (watched: LoadedFile['watched'][number]): boolean => watched.isCurrent();

/** Checks a cache entry on the event loop. Returns false if the thread pool has to check it. */
export function isUnchangedSync(context: CheckContext, entry: CacheEntry, now: number): boolean {
  const { file } = entry;
  if (file === undefined || now >= entry.pathVerifiedUntil || !file.watched.every(isCurrent)) return false;
  if (!context.files.isUnchangedSync(file.dependencies)) return false;
  entry.freshUntil = freshUntil(file, context.revalidateAfter);
  return true;
}

/** Whether the check of another file, which has just ended, shows that an entry is unchanged: it has seen the same paths. */
export function isCheckedWith(entry: CacheEntry, { dependencies }: LoadedFile): boolean {
  const { file } = entry;
  if (file === undefined || entry.wantsBodies || !entry.isCheckedSync) return false;
  if (performance.now() >= entry.pathVerifiedUntil || !file.watched.every(isCurrent)) return false;
  if (entry.seenWith === dependencies) return true;
  const hasSeen = file.dependencies.every(({ path, version }) =>
    dependencies.some((seen) => seen.path === path && sameOrAbsent(seen.version, version)),
  );
  if (hasSeen) entry.seenWith = dependencies;
  return hasSeen;
}

/** Checks a cache entry in the thread pool, and loads the file when it is not cached or has changed. */
export async function revalidate(context: CheckContext, entry: CacheEntry): Promise<LoadResult> {
  await context.rules?.refresh();
  const { file } = entry;
  const mustLoad = file === undefined || file.isRacilyClean || entry.wantsBodies;
  if (mustLoad || !(await isUnchanged(context, entry, file))) return await reload(context, entry);
  entry.freshUntil = freshUntil(file, context.revalidateAfter);
  return file;
}

async function isUnchanged(context: CheckContext, entry: CacheEntry, file: LoadedFile): Promise<boolean> {
  if (!(await context.files.isUnchanged(file.dependencies)) || !file.watched.every(isCurrent)) return false;
  if (performance.now() < entry.pathVerifiedUntil) return true;
  const until = performance.now() + PATH_VERIFIED_FOR;
  // The error is reported when the file is loaded again.
  const isVerified = await context.stillResolves(file).catch(() => false);
  entry.pathVerifiedUntil = isVerified ? until : 0;
  return isVerified;
}

async function reload(context: CheckContext, entry: CacheEntry): Promise<LoadResult> {
  context.cache.invalidate(entry);
  const until = performance.now() + PATH_VERIFIED_FOR;
  const result = await context.load(entry.urlPath, { isPopular: isPopular(entry) });
  if (result.kind !== 'file') return result;
  context.cache.set(entry, result);
  context.onCached(entry, result);
  entry.isCheckedSync = !result.isRacilyClean && context.files.allowsSync(result.dependencies);
  entry.pathVerifiedUntil = until;
  entry.freshUntil = freshUntil(result, context.revalidateAfter);
  return result;
}

/**
 * Returns the new `freshUntil`. A file that changed within `revalidateAfter` is likely to change again and is
 * always checked.
 */
function freshUntil(file: LoadedFile, revalidateAfter: number): number {
  if (revalidateAfter === 0 || file.isRacilyClean || Date.now() - file.changedAt <= revalidateAfter) return 0;
  return performance.now() + revalidateAfter;
}

// A stat of a cached inode takes a few microseconds. If a few of them take a millisecond, they waited.
const SLOW_CHECK_MS = 1;
// Milliseconds for which the thread pool runs all checks after a slow one. Each further slow one within a
// second doubles the time.
const MIN_OPEN_MS = 100;
const MAX_OPEN_MS = 10_000;
const FORGET_MS = 1000;
// Reading the block counter costs as much as a stat, so a value of up to this age is used as the starting
// point.
const SAMPLE_MS = 100;

const readsOfProcess = (): number => process.resourceUsage().fsRead;

/**
 * Stops work on the event loop for a while after it waited for a disk: checks were slow and the process read blocks
 * meanwhile. A preempted or throttled process is slow too, but reads no blocks. Times are values of `performance.now()`.
 */
export class CircuitBreaker {
  readonly #blocksRead: () => number;
  #openUntil = 0;
  #openMs = 0;
  #sampledAt = Number.NEGATIVE_INFINITY;
  #blocks = 0;

  constructor(blocksRead: () => number = readsOfProcess) {
    this.#blocksRead = blocksRead;
  }

  allows(now: number): boolean {
    if (now < this.#openUntil) return false;
    if (now - this.#sampledAt >= SAMPLE_MS) this.#sample(now);
    return true;
  }

  /** Records how long a few checks took. */
  record(startedAt: number, endedAt: number): void {
    if (endedAt - startedAt < SLOW_CHECK_MS) return;
    const before = this.#blocks;
    this.#sample(endedAt);
    if (this.#blocks <= before) return;
    const isRepeated = endedAt - this.#openUntil < FORGET_MS;
    this.#openMs = isRepeated ? Math.min(Math.max(2 * this.#openMs, MIN_OPEN_MS), MAX_OPEN_MS) : MIN_OPEN_MS;
    this.#openUntil = endedAt + this.#openMs;
  }

  #sample(now: number): void {
    this.#sampledAt = now;
    this.#blocks = this.#blocksRead();
  }
}

// Larger files are not hashed: one request for a sparse file could keep the disk busy for hours.
const MAX_HASH_BYTES = 2 ** 34;

/**
 * Hashes files that are too large to be hashed before their first response, one at a time and slice by slice.
 * Until the ETag is ready, responses have Last-Modified only. Hashing stops when the file changes or leaves
 * the cache.
 */
export class BackgroundEtags {
  readonly #settings: StaticSettings;
  #work: Promise<void> = Promise.resolve();

  constructor(settings: StaticSettings) {
    this.#settings = settings;
  }

  add(entry: CacheEntry, file: LoadedFile): void {
    if (!this.isMissing(file)) return;
    this.#work = this.#work.then(() => this.complete(file, () => entry.file === file));
  }

  isMissing(file: LoadedFile): boolean {
    return this.#missingIn(file).length > 0;
  }

  /** Computes the ETags of a file now. A file that cannot be read stays without one. */
  async complete(file: LoadedFile, isWanted: () => boolean): Promise<void> {
    for (const representation of this.#missingIn(file))
      await addEtag(representation, isWanted).catch(() => undefined);
  }

  #missingIn({ uncompressed, precompressed, isRacilyClean }: LoadedFile): readonly Representation[] {
    if (this.#settings.etag !== 'content' || isRacilyClean) return [];
    return [uncompressed, ...precompressed].filter(
      ({ tag, metadata }) => tag === undefined && metadata.size <= MAX_HASH_BYTES,
    );
  }
}

/** Hashes the version that a representation describes. A file that has changed stays without an ETag. */
async function addEtag(representation: Representation, isWanted: () => boolean): Promise<void> {
  const { realPath, version, metadata } = representation;
  const file = await openRealPath(realPath);
  if (file === undefined) return;
  try {
    const before = await file.version();
    if (before === undefined || !sameVersion(version, before)) return;
    const etag = await file.hash(metadata.size, isWanted);
    const after = await file.version();
    if (etag !== undefined && after !== undefined && sameContent(before, after))
      representation.tag = etagForCoding(etag, metadata.coding);
  } finally {
    file.close();
  }
}
