import type { LoadedFile } from '../../src/static/cache.ts';
import { Representation } from '../../src/static/representation.ts';

/** Creates a loaded file of a size; with its body unless `isInMemory` is false. */
export function loadedFile(
  bytes: number,
  more: Partial<LoadedFile> & { isInMemory?: boolean } = {},
): LoadedFile {
  const { isInMemory = true, ...rest } = more;
  const uncompressed = new Representation(
    {
      coding: undefined,
      type: 'text/plain',
      size: bytes,
      cacheControl: undefined,
      vary: undefined,
      acceptRanges: true,
    },
    {
      path: '/',
      realPath: '/',
      version: { dev: 1n, ino: 1n, size: BigInt(bytes), mtimeNs: 1n, ctimeNs: 1n },
      body: isInMemory ? Buffer.alloc(bytes) : undefined,
    },
    { tag: '"x"', modified: 0 },
  );
  return {
    kind: 'file',
    dependencies: [],
    uncompressed,
    page: undefined,
    watched: [],
    variants: undefined,
    languages: undefined,
    precompressed: [],
    createdCodings: undefined,
    stats: undefined,
    isRacilyClean: false,
    changedAt: 0,
    ...rest,
  };
}
