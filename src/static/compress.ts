import type { IncomingMessage } from 'node:http';
import { constants } from 'node:zlib';
import type { Precompressed } from '../../types/static.ts';
import { debug } from '../diagnostics/logging.ts';
import {
  canEncode,
  encode,
  encodedTag,
  encodingId,
  type Preferences,
  parsePreferences,
} from '../http/codings.ts';
import { listMatchesWeakly } from '../http/conditions.ts';
import { cacheByHeader, type EncodingWeights } from '../http/negotiation.ts';
import { MAX_DELAY } from '../options/rules.ts';
import { isCompressibleType } from './media-types.ts';
import { encodedRepresentation, type Representation } from './representation.ts';

// Tasks keep the path of a file, not its bytes.
const MAX_QUEUED = 4096;

interface FileContent {
  readonly etag: string;
  readonly size: number;
  /** Reads the bytes; undefined when the file has other content now. */
  readonly read: () => Promise<Buffer | undefined>;
}

/** Smaller files gain little: their headers are as large. Larger ones take seconds. */
const MIN_BYTES = 1024;
const MAX_BYTES = 8 << 20;
// The share of one CPU core that the work takes on average.
const CPU_SHARE = 0.5;
// The share of its size to which text compresses. Used to check for room before the work.
const EXPECTED_RATIO = 0.3;
/** Bytes of all results. Tests shorten them. */
export const MEMORY: { maxBytes: number } = { maxBytes: 32 << 20 };
/** Those that this version of Node can create, in the order of preference. */
const CODINGS: readonly Precompressed[] = (['br', 'zstd', 'gzip'] as const).filter(canEncode);
// The share of the size up to which the result is worth the work of the client.
const MAX_RATIO = 0.95;

/**
 * Compresses each content once per coding, in the background, for all files of one middleware without precompressed copies.
 * Keeps the results in memory, by content and coding.
 */
export class Compressor {
  readonly preferencesOf: (acceptEncoding: string) => Preferences = cacheByHeader((header) =>
    parsePreferences(header, CODINGS),
  );
  /** The least recently inserted results are first. */
  readonly #results = new Map<string, Stored>();
  readonly #queue = new BackgroundQueue({ share: CPU_SHARE, maxTasks: MAX_QUEUED });
  #bytes = 0;

  accepts(type: string, size: number): boolean {
    return size >= MIN_BYTES && size <= MAX_BYTES && isCompressibleType(type);
  }

  getReady(key: string): CompressionResult | undefined {
    const stored = this.#results.get(key);
    if (stored !== undefined) stored.usedAt = performance.now();
    return stored?.result;
  }

  /** Returns the result for a key, which identifies its bytes; or undefined and queues the work. */
  get(key: string, content: FileContent, coding: Precompressed): CompressionResult | undefined {
    const result = this.getReady(key);
    // Without room, hot files would evict each other and be compressed again and again.
    if (result === undefined && this.#makeRoom(OVERHEAD + Math.ceil(content.size * EXPECTED_RATIO)))
      this.#queue.add(key, () => this.#run(key, content, coding));
    return result;
  }

  async #run(key: string, content: FileContent, coding: Precompressed): Promise<number> {
    const bytes = await content.read();
    if (bytes === undefined) return 0;
    const startedAt = performance.now();
    const encoded = await encodeInBackground(bytes, coding);
    const endedAt = performance.now();
    debug.static('compressed %s: %d to %d bytes', key, bytes.length, encoded.length);
    const result = encoded.length <= bytes.length * MAX_RATIO ? encoded : 'useless';
    if (this.#makeRoom(sizeOf(result))) {
      this.#results.set(key, { result, usedAt: endedAt });
      this.#bytes += sizeOf(result);
    }
    return endedAt - startedAt;
  }

  /** Makes room for a result by evicting results that are not in use. Returns false if there are too few of them. */
  #makeRoom(needed: number): boolean {
    const { maxBytes } = MEMORY;
    const idleSince = performance.now() - MIN_IDLE_MS;
    for (const [key, { result, usedAt }] of this.#results) {
      if (needed > maxBytes || this.#bytes + needed <= maxBytes) break;
      if (usedAt > idleSince) continue;
      this.#results.delete(key);
      this.#bytes -= sizeOf(result);
    }
    return this.#bytes + needed <= maxBytes;
  }
}

/** The compressed bytes, or `useless` if they are not smaller than the file. */
type CompressionResult = Buffer | 'useless';

interface Stored {
  readonly result: CompressionResult;
  usedAt: number;
}

// Results that were used within this time are not evicted, so that more files than fit cause no endless
// recompression.
const MIN_IDLE_MS = 60_000;
// A result without bytes, its key and its place in the Map take about this many bytes.
const OVERHEAD = 200;

const sizeOf = (result: CompressionResult): number => OVERHEAD + (result === 'useless' ? 0 : result.length);

/** One coding that a file may be sent in. */
interface Candidate {
  readonly coding: Precompressed;
  /** Identifies the bytes in the compressor. */
  readonly key: string;
  readonly tag: string | undefined;
}

/** The codings of one loaded file, which are compressed when a client first prefers them. */
export class CompressedCodings {
  readonly #compressor: Compressor;
  readonly #content: FileContent;
  readonly #identity: Representation;
  #candidates: readonly Candidate[] | undefined;

  /** @param identity - the representation of the file itself */
  constructor(compressor: Compressor, content: FileContent, identity: Representation) {
    this.#compressor = compressor;
    this.#content = content;
    this.#identity = identity;
  }

  /**
   * Returns a coding when its bytes are ready, or when the client has them already and gets a 304; otherwise the file
   * itself; undefined if the client accepts none of them.
   *
   * @param hasOtherEtag - whether other code has set an ETag, so that conditions do not apply to those of the codings
   */
  select({ headers, method }: IncomingMessage, hasOtherEtag: boolean): Representation | undefined {
    const header = headers['accept-encoding'];
    if (typeof header !== 'string') return this.#identity;
    const preferences = this.#compressor.preferencesOf(header);
    const { weightOf, identityWeight } = preferences;
    const { tag, metadata } = this.#identity;
    // A range of a compressed body would be of little use, because only its whole is cached.
    if (headers.range !== undefined && method === 'GET' && metadata.acceptRanges && identityWeight > 0)
      return this.#identity;
    const known = headers['if-none-match'];
    if (known !== undefined && !hasOtherEtag) {
      const current = this.#findKnown(known, weightOf);
      if (current !== undefined) return current;
      if (identityWeight > 0 && tag !== undefined && listMatchesWeakly(known, tag)) return this.#identity;
    }
    return this.#best(preferences);
  }

  /** Finds a coding whose current bytes the client has, as its `If-None-Match` shows. */
  #findKnown(known: string, weightOf: EncodingWeights): Representation | undefined {
    for (const { coding, tag } of this.#list()) {
      const isKnown = tag !== undefined && weightOf(coding) > 0 && listMatchesWeakly(known, tag);
      if (isKnown) return encodedRepresentation(this.#identity, coding, tag, undefined);
    }
    return undefined;
  }

  /**
   * Returns the coding that the client prefers. While it is not ready, another one that is ready, or the file
   * itself.
   */
  #best({ preferred, identityWeight }: Preferences): Representation | undefined {
    const candidates = this.#list();
    for (const index of preferred) {
      const { coding, tag, key } = candidates[index] as Candidate;
      const isBest = index === preferred[0];
      const body = isBest ? this.#compressor.get(key, this.#content, coding) : this.#compressor.getReady(key);
      if (body !== undefined && body !== 'useless')
        return encodedRepresentation(this.#identity, coding, tag, body);
    }
    return identityWeight > 0 ? this.#identity : undefined;
  }

  #list(): readonly Candidate[] {
    this.#candidates ??= CODINGS.map((coding) => this.#createCandidate(coding));
    return this.#candidates;
  }

  #createCandidate(coding: Precompressed): Candidate {
    const { etag, size } = this.#content;
    const id = encodingId(coding, levelFor(coding, size));
    const { tag } = this.#identity;
    return { coding, key: `${etag.slice(1, -1)}-${id}`, tag: tag && encodedTag(tag, id) };
  }
}

/** Work that runs in the background. Returns the milliseconds of CPU time that it took. */
type Task = () => Promise<number>;

interface QueueLimits {
  /** The share of one CPU core: more than 0, at most 1. */
  readonly share: number;
  readonly maxTasks: number;
}

/**
 * Runs tasks one at a time, and pauses between them so that they use at most a share of one CPU core on
 * average. Tasks have keys: a key that is queued or running is not queued again.
 */
export class BackgroundQueue {
  readonly #limits: QueueLimits;
  /** The tasks that wait, and the one that runs. */
  readonly #tasks = new Map<string, Task>();
  #isBusy = false;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  /** Queues a task. A full queue drops it: the next request for the same file queues it again. */
  add(key: string, task: Task): void {
    if (this.#tasks.has(key) || this.#tasks.size >= this.#limits.maxTasks) return;
    this.#tasks.set(key, task);
    if (!this.#isBusy) this.#runNext();
  }

  #runNext(): void {
    const next = this.#tasks.entries().next();
    this.#isBusy = next.done !== true;
    if (next.done === true) return;
    const [key, task] = next.value;
    const finish = (milliseconds: number): void => {
      this.#tasks.delete(key);
      this.#pauseAfter(milliseconds);
    };
    // A task that fails is not repeated before the next request for its file.
    task().then(finish, () => finish(0));
  }

  #pauseAfter(milliseconds: number): void {
    const pause = Math.min(milliseconds * (1 / this.#limits.share - 1), MAX_DELAY);
    // The timer does not keep the process alive.
    setTimeout(() => this.#runNext(), pause).unref();
  }
}

const MIB = 1 << 20;

/** Levels for files up to a MiB, and for larger ones. */
const LEVELS: Readonly<Record<Precompressed, readonly [small: number, large: number]>> = {
  br: [constants.BROTLI_MAX_QUALITY, 9],
  zstd: [19, 12],
  gzip: [constants.Z_BEST_COMPRESSION, constants.Z_BEST_COMPRESSION],
};

/** The highest level that is fast enough for the background. */
const levelFor = (coding: Precompressed, size: number): number => LEVELS[coding][size <= MIB ? 0 : 1];

/** Compresses bytes in the thread pool, at the highest level that is fast enough for the background. */
async function encodeInBackground(bytes: Buffer, coding: Precompressed): Promise<Buffer> {
  const result = await encode(bytes, coding, levelFor(coding, bytes.length));
  // The result may be a part of a larger buffer, which would stay in memory.
  const exact = Buffer.allocUnsafeSlow(result.length);
  result.copy(exact);
  return exact;
}

/** Compresses bytes at the highest level, however long it takes. */
export const encodeBest = (bytes: Buffer, coding: Precompressed): Promise<Buffer> =>
  encode(bytes, coding, LEVELS[coding][0]);
