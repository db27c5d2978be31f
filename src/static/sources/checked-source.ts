import { types } from 'node:util';
import type { SourceBytes, SourceStat, StaticSource } from '../../../types/sources.ts';
import { wrongReturnValue } from '../../options/resolve-options.ts';
import { isCount, isObject, isString, isThenable } from '../../options/rules.ts';
import { STATIC_OPTIONS } from '../../options/scopes.ts';

type Found = SourceStat | 'directory' | undefined;

/** Checks what the functions of a source return. The `stat` of a checked source returns no other thenable than a promise. */
export function checkedSource(source: StaticSource): StaticSource {
  return {
    stat(path) {
      const found = source.stat(path);
      return isThenable(found) ? Promise.resolve(found).then(checkStat) : checkStat(found);
    },
    open: async (path, range) => checkBytes(await source.open(path, range)),
    list: () => source.list(),
  };
}

function checkStat(found: unknown): Found {
  if (found === undefined || found === 'directory' || isStat(found)) return found;
  const accepted = "{ size, version, mtime }, 'directory' or undefined; version is a string, mtime a Date";
  throw wrongReturnValue(STATIC_OPTIONS, 'dir.stat', found, accepted);
}

function isStat(found: unknown): found is SourceStat {
  if (!isObject(found)) return false;
  const { size, version, mtime } = found;
  return isCount(size) && isString(version) && (mtime === undefined || mtime === null || types.isDate(mtime));
}

function checkBytes(bytes: SourceBytes): SourceBytes {
  if (types.isUint8Array(bytes)) return bytes;
  if (isObject(bytes) && Symbol.asyncIterator in bytes) return new CheckedChunks(bytes);
  throw wrongBytes(bytes);
}

/** Text is not converted to bytes: its length is not the number of its bytes. */
class CheckedChunks implements AsyncIterable<Uint8Array> {
  readonly #chunks: AsyncIterable<unknown>;

  constructor(chunks: AsyncIterable<unknown>) {
    this.#chunks = chunks;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for await (const chunk of this.#chunks) {
      if (!types.isUint8Array(chunk)) throw wrongBytes(chunk);
      yield chunk;
    }
  }

  destroy(): void {
    const chunks = this.#chunks;
    if ('destroy' in chunks && typeof chunks.destroy === 'function') chunks.destroy();
  }
}

/** Closes a stream that may be waiting for bytes. An iterator could not return before they arrive. */
export function destroyBytes(bytes: SourceBytes): void {
  if (bytes instanceof CheckedChunks) bytes.destroy();
}

const wrongBytes = (value: unknown): TypeError =>
  wrongReturnValue(STATIC_OPTIONS, 'dir.open', value, 'a Uint8Array, or an async iterable of Uint8Arrays');
