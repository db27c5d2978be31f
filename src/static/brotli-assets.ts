import { promisify } from 'node:util';
import { brotliDecompress, gzip } from 'node:zlib';
import type { StaticFilesOptions } from '../../types/static.ts';
import { parseAcceptEncoding } from '../http/negotiation/accept-encoding.ts';
import { localDeviceOf } from './cache/local-device.ts';
import { tagOf } from './file/hash.ts';
import { type Found, isInPlace } from './file/load.ts';
import { mediaTypeOf } from './file/media-type.ts';
import { codedTag, represent } from './file/representation.ts';
import { locate } from './file/resolve-file.ts';
import { takeSnapshot } from './file/snapshot.ts';
import { createSite, type Site } from './handler.ts';
import { resolveStaticOptions, type Settings } from './options.ts';
import { resolveRoot } from './root.ts';

const unpack = promisify(brotliDecompress);
const pack = promisify(gzip);

const CODINGS = ['br', 'gzip', 'identity'] as const;
const MIB = 1 << 20;

/**
 * Serves a directory of our own whose files exist only compressed, as `name.br`: `name` is answered in brotli as it
 * lies there, or decoded (and packed again with gzip) for clients that want that, once, and kept like any body.
 */
export function createAssets(dir: string, options: StaticFilesOptions = {}): Site {
  const root = resolveRoot(dir);
  const settings = resolveStaticOptions({
    immutable: true,
    ...options,
    cache: { maxFileBytes: 16 * MIB, ...(options.cache || {}) },
  });
  return createSite(settings, {
    load: (key) => loadAsset(root, key, settings),
    isInPlace: (entry) => isInPlace(root, entry, settings),
    device: localDeviceOf(root),
    prefixOf: (req) => bestCoding(req.headers['accept-encoding']),
  });
}

function bestCoding(header: string | undefined): string | undefined {
  const preference = parseAcceptEncoding(header);
  let best: string | undefined;
  for (const coding of CODINGS) {
    if (preference(coding) > (best === undefined ? 0 : preference(best))) best = coding;
  }
  return best;
}

/** The key is the coding, then the path: one entry each, so that a look, a decoding and a bound of memory are shared. */
async function loadAsset(root: string, key: string, settings: Settings): Promise<Found> {
  const slash = key.indexOf('/');
  const coding = key.slice(0, slash);
  const path = key.slice(slash);
  const located = await locate(root, `${path}.br`, settings);
  if (located.kind !== 'file') return located;
  const snapshot = await takeSnapshot(located.realPath, settings);
  if (snapshot === undefined || snapshot === 'not-a-file' || snapshot.body === undefined)
    return { kind: 'busy' };
  const { identity, young } = snapshot;
  const body = await recode(snapshot.body, coding);
  const plain = represent(
    {
      coding: coding === 'identity' ? undefined : coding,
      type: mediaTypeOf(path),
      size: body.length,
      cacheControl: settings.cacheControl(path),
      vary: 'Accept-Encoding',
      acceptRanges: settings.acceptRanges,
    },
    { path: located.path, realPath: located.realPath, identity, body },
    {
      tag: codedTag(tagOf(body), coding),
      modified: Number(identity.mtimeNs / 1_000_000_000n) * 1000,
    },
  );
  const changedAt = Number(identity.ctimeNs / 1_000_000n);
  return {
    kind: 'entry',
    dependencies: located.dependencies,
    plain,
    coded: [],
    stat: snapshot.stat,
    bytes: body.length,
    young,
    changedAt,
  };
}

async function recode(brotli: Buffer, coding: string): Promise<Buffer> {
  if (coding === 'br') return brotli;
  const plain = await unpack(brotli);
  return coding === 'gzip' ? pack(plain) : plain;
}
