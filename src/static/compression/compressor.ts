import type { Precompressed } from '../../../types/static.ts';
import { type EncodingWeights, parseAcceptEncoding } from '../../http/negotiation/accept-encoding.ts';
import { cacheByHeader } from '../../http/negotiation/header-cache.ts';
import { debug } from '../../logging/debug.ts';
import type { CompressSettings } from '../compress-options.ts';
import type { FileContent } from '../file/loaded-file.ts';
import { BackgroundQueue } from './background-queue.ts';
import { encode, encodingId } from './encoders.ts';
import { type CompressionResult, ResultCache } from './result-cache.ts';
import { ResultDirectory } from './result-directory.ts';

// Tasks keep the path of a file, not its bytes.
const MAX_QUEUED = 4096;
// A smaller saving is not worth the work of the client.
const MAX_RATIO = 0.95;
// Text compresses to about this share. Used to check for room before the work.
const EXPECTED_RATIO = 0.3;

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
  readonly #directory: ResultDirectory | undefined;

  constructor(settings: CompressSettings) {
    const { maxBytes, cpuShare, directory, maxDirectoryBytes } = settings;
    this.settings = settings;
    this.preferencesOf = cacheByHeader((header) => parsePreferences(header, settings.codings));
    this.#results = new ResultCache(maxBytes);
    this.#queue = new BackgroundQueue(cpuShare, MAX_QUEUED);
    this.#directory = directory === undefined ? undefined : new ResultDirectory(directory, maxDirectoryBytes);
  }

  /** Returns a result that is in memory. */
  getReady(key: string): CompressionResult | undefined {
    return this.#results.get(key);
  }

  /** Returns the result for a key of `keyFor`, or undefined and queues the work. */
  get(key: string, coding: Precompressed, content: FileContent): CompressionResult | undefined {
    const result = this.#results.get(key);
    if (result !== undefined) return result;
    // Without room, hot files would evict each other and be compressed again and again.
    if (this.#results.makeRoom(Math.ceil(content.size * EXPECTED_RATIO))) {
      this.#queue.add(key, () => this.#run(key, coding, content));
    }
    return undefined;
  }

  async #run(key: string, coding: Precompressed, content: FileContent): Promise<number> {
    const stored = await this.#directory?.read(key);
    if (stored !== undefined) {
      this.#results.set(key, stored);
      return 0;
    }
    const bytes = await content.read();
    if (bytes === undefined) return 0;
    const startedAt = performance.now();
    const encoded = await encode(bytes, coding);
    const milliseconds = performance.now() - startedAt;
    const result = encoded.length <= bytes.length * MAX_RATIO ? encoded : 'useless';
    debug.static('compressed %s: %d to %d bytes', key, bytes.length, encoded.length);
    this.#results.set(key, result);
    await this.#directory?.write(key, result);
    return milliseconds;
  }
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
