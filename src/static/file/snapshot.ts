import type { Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { Settings } from '../options.ts';
import { type Identity, identityOf, isYoung, sameBytes } from './file-version.ts';
import { readWhole, tagOf, tagOfFile, tagOfVersion } from './hash.ts';
import { openReal, versionOf } from './open-contained.ts';

/** A version that was read while nobody changed it. */
export interface Snapshot {
  readonly identity: Identity;
  readonly body: Buffer | undefined;
  readonly tag: string | undefined;
  readonly stat: Stats | undefined;
  readonly young: boolean;
}

/** One version of a file, its bytes too when it is small; undefined when it changed meanwhile. */
export async function takeSnapshot(
  realPath: string,
  settings: Settings,
): Promise<Snapshot | 'not-a-file' | undefined> {
  const handle = await openReal(realPath);
  if (handle === undefined) return undefined;
  try {
    const before = await versionOf(handle);
    if (before === undefined) return 'not-a-file';
    const snapshot = await readVersion(handle, before, settings);
    const after = await versionOf(handle);
    return snapshot !== undefined && after !== undefined && sameBytes(before, after) ? snapshot : undefined;
  } finally {
    await handle.close();
  }
}

async function readVersion(
  handle: FileHandle,
  identity: Identity,
  settings: Settings,
): Promise<Snapshot | undefined> {
  const size = Number(identity.size);
  const young = isYoung(identity, Date.now());
  const stat = settings.setHeaders === undefined ? undefined : await handle.stat();
  const common = { identity: identityOf(identity), stat, young };
  if (settings.etag !== 'content') {
    const tag = settings.etag === 'stat' ? tagOfVersion(identity, young) : undefined;
    const body = isSmall(size, settings) ? await readWhole(handle, size) : undefined;
    return body === undefined && isSmall(size, settings) ? undefined : { ...common, body, tag };
  }
  if (isSmall(size, settings)) {
    const body = await readWhole(handle, size);
    return body && { ...common, body, tag: tagOf(body) };
  }
  // While another write could leave the times as they are, the bytes that will be streamed may not be those hashed.
  if (size > settings.hashAtOnce || young) return { ...common, body: undefined, tag: undefined };
  const tag = await tagOfFile(handle, size);
  return tag === undefined ? undefined : { ...common, body: undefined, tag };
}

function isSmall(size: number, settings: Settings): boolean {
  return size <= settings.cache.maxFileBytes && size <= settings.cache.maxBytes;
}
