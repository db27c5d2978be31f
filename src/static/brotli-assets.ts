import { promisify } from 'node:util';
import { brotliDecompress, gzip } from 'node:zlib';
import type { StaticFilesOptions } from '../../types/static.ts';
import { parseAcceptEncoding } from '../http/negotiation/accept-encoding.ts';
import { lastModifiedOf } from './disk/file-version.ts';
import { etagOfBytes } from './disk/hash.ts';
import { openInsideRoot } from './disk/open-inside-root.ts';
import type { RootDirectory } from './disk/root-directory.ts';
import { stillResolves } from './file/load.ts';
import type { LoadResult } from './file/loaded-file.ts';
import { mediaTypeOf } from './file/media-type.ts';
import { createRepresentation, etagForCoding } from './file/representation.ts';
import { resolveFile } from './file/resolve-file.ts';
import { takeSnapshot } from './file/snapshot.ts';
import { createStaticHandler, type StaticHandler } from './handler.ts';
import { resolveStaticOptions, type StaticSettings } from './options.ts';
import { resolveRoot } from './root.ts';

const decompressBrotli = promisify(brotliDecompress);
const compressGzip = promisify(gzip);

const CODINGS = ['br', 'gzip', 'identity'] as const;
const MIB = 1 << 20;

/**
 * Serves a directory of the package whose files exist as `name.br` only. Clients that accept brotli get the bytes on disk;
 * for other clients the file is decompressed (and compressed with gzip) once and then cached like any body.
 */
export function createBrotliAssets(dir: string, options: StaticFilesOptions = {}): StaticHandler {
  const root = resolveRoot(dir);
  const settings = resolveStaticOptions({
    immutable: true,
    ...options,
    cache: { maxFileBytes: 16 * MIB, ...(options.cache || {}) },
  });
  return createStaticHandler(settings, {
    load: (key) => loadAsset(root, key, settings),
    stillResolves: (file) => stillResolves(root, file, settings),
    localDevice: root.localDevice,
    cacheKeyPrefix: (req) => bestCoding(req.headers['accept-encoding']),
  });
}

function bestCoding(header: string | undefined): string | undefined {
  const weightOf = parseAcceptEncoding(header);
  let best: string | undefined;
  for (const coding of CODINGS) {
    if (weightOf(coding) > (best === undefined ? 0 : weightOf(best))) best = coding;
  }
  return best;
}

/** The cache key is the coding followed by the path: each coding has its own cache entry. */
async function loadAsset(root: RootDirectory, key: string, settings: StaticSettings): Promise<LoadResult> {
  const slash = key.indexOf('/');
  const coding = key.slice(0, slash);
  const path = key.slice(slash);
  const found = await resolveFile(root, `${path}.br`, settings);
  if (found.kind !== 'file') return found;
  const file = await openInsideRoot(root, found.path, found.stats, settings);
  if (file === undefined) return { kind: 'busy' };
  if ('kind' in file) return file;
  const { realPath } = file;
  const snapshot = await takeSnapshot(file, settings, { isPopular: true }).finally(() => file.close());
  if (snapshot === undefined || snapshot === 'not-a-file' || snapshot.body === undefined)
    return { kind: 'busy' };
  const { version, stats, isRacilyClean } = snapshot;
  const body = await recode(snapshot.body, coding);
  const representation = createRepresentation(
    {
      coding: coding === 'identity' ? undefined : coding,
      type: mediaTypeOf(path),
      size: body.length,
      cacheControl: settings.cacheControl(path),
      vary: 'Accept-Encoding',
      acceptRanges: settings.acceptRanges,
    },
    { path: found.path, realPath, version, body },
    {
      tag: etagForCoding(etagOfBytes(body), coding),
      modified: settings.lastModified ? lastModifiedOf(version) : undefined,
    },
  );
  return {
    kind: 'file',
    dependencies: [...found.dependencies, { path: found.path, version }],
    uncompressed: representation,
    precompressed: [],
    stats,
    canStream: false,
    bodyBytes: body.length,
    isRacilyClean,
    changedAt: Number(version.ctimeNs / 1_000_000n),
  };
}

async function recode(brotli: Buffer, coding: string): Promise<Buffer> {
  if (coding === 'br') return brotli;
  const plain = await decompressBrotli(brotli);
  return coding === 'gzip' ? compressGzip(plain) : plain;
}
