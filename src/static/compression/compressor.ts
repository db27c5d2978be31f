import type { Precompressed } from '../../../types/static.ts';
import { type EncodingWeights, parseAcceptEncoding } from '../../http/negotiation/accept-encoding.ts';
import { cacheByHeader } from '../../http/negotiation/text-cache.ts';
import { debug } from '../../logging/debug.ts';
import type { CompressSettings } from '../compress-options.ts';
import type { FileContent } from '../file/loaded-file.ts';
import { BackgroundQueue, type Task } from './background-queue.ts';
import { encode, encodingId } from './encoders.ts';
import { type CompressionResult, ResultCache } from './result-cache.ts';

// Tasks keep the path of a file, not its bytes.
const MAX_QUEUED = 4096;

/** The compression of one content with one coding. */
export interface Work {
  readonly content: FileContent;
  /** The share of the size that the result probably has. Used to check for room before the work. */
  readonly expectedRatio: number;
  /** The share of the size up to which the result is worth the work of the client. */
  readonly maxRatio: number;
  /** Returns the compressed bytes; undefined if there is no result, which is not stored. */
  encode(bytes: Buffer): Promise<Buffer | undefined>;
}

/** The weights of an `Accept-Encoding`, and the order of the codings for it. */
export interface Preferences {
  readonly weightOf: EncodingWeights;
  readonly identityWeight: number;
  /** The indexes of the codings that the client prefers to the file itself, the best first. */
  readonly preferred: readonly number[];
}

/** Compresses each content once per coding, in the background, for all files of one middleware. */
export class Compressor {
  readonly settings: CompressSettings;
  readonly preferencesOf: (acceptEncoding: string) => Preferences;
  readonly #results: ResultCache;
  readonly #queue: BackgroundQueue;

  constructor(settings: CompressSettings) {
    const { maxBytes, cpuShare } = settings;
    this.settings = settings;
    this.preferencesOf = cacheByHeader((header) => parsePreferences(header, settings.codings));
    this.#results = new ResultCache(maxBytes);
    this.#queue = new BackgroundQueue({ share: cpuShare, maxTasks: MAX_QUEUED });
  }

  /** Returns a result that is in memory. */
  getReady(key: string): CompressionResult | undefined {
    return this.#results.get(key);
  }

  /** Returns the result for a key, which identifies its bytes; or undefined and queues the work. */
  get(key: string, work: Work): CompressionResult | undefined {
    const result = this.#results.get(key);
    if (result !== undefined) return result;
    // Without room, hot files would evict each other and be compressed again and again.
    if (this.#results.makeRoom(Math.ceil(work.content.size * work.expectedRatio))) {
      this.#queue.add(key, () => this.#run(key, work));
    }
    return undefined;
  }

  /** Runs a task in the background within the CPU budget, unless its key is queued already. */
  schedule(key: string, task: Task): void {
    this.#queue.add(key, task);
  }

  async #run(key: string, work: Work): Promise<number> {
    const bytes = await work.content.read();
    if (bytes === undefined) return 0;
    const startedAt = performance.now();
    const encoded = await work.encode(bytes);
    const milliseconds = performance.now() - startedAt;
    if (encoded === undefined) return milliseconds;
    const result = encoded.length <= bytes.length * work.maxRatio ? encoded : 'useless';
    debug.static('compressed %s: %d to %d bytes', key, bytes.length, encoded.length);
    this.#results.set(key, result);
    return milliseconds;
  }
}

/** Creates the work of compressing a content with a coding. */
export function workFor(coding: Precompressed, content: FileContent): Work {
  return {
    content,
    // Text compresses to about this share.
    expectedRatio: 0.3,
    maxRatio: 0.95,
    encode: (bytes) => encode(bytes, coding),
  };
}

function parsePreferences(header: string, codings: readonly Precompressed[]): Preferences {
  const weightOf = parseAcceptEncoding(header);
  const identityWeight = weightOf('identity');
  const weights = codings.map(weightOf);
  const weightAt = (index: number): number => weights[index] as number;
  const preferred = [...codings.keys()]
    .filter((index) => weightAt(index) > 0 && weightAt(index) >= identityWeight)
    .sort((a, b) => weightAt(b) - weightAt(a));
  return { weightOf, identityWeight, preferred };
}

/** Identifies the compressed bytes of a content. */
export function keyFor(coding: Precompressed, { etag, size }: FileContent): string {
  return `${etag.slice(1, -1)}-${encodingId(coding, size)}`;
}
