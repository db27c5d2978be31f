import { createHash } from 'node:crypto';
import type { SeaFilesOptions, SourceStat, StaticSource } from '../../../types/sources.ts';
import { resolveOptions } from '../../options/resolve-options.ts';
import { isListOf, isString, type Rules, rule } from '../../options/rules.ts';
import { SEA_FILES } from '../../options/scopes.ts';
import { DirectoryPaths, toSourcePath } from './tree.ts';

/** The functions of `node:sea`; the last is missing before Node 24.8. */
interface Sea {
  isSea(): boolean;
  getRawAsset(key: string): ArrayBuffer | string;
  getAssetKeys?(): string[];
}

interface SeaSettings {
  readonly prefix: string;
  readonly keys: readonly string[] | undefined;
}

const RULES: Rules<SeaSettings> = {
  prefix: rule('', isString, 'a string'),
  keys: rule(undefined, isListOf(isString), 'a list of asset keys'),
};

/** Describes an asset. The ETag of a large file comes from its version, so another build needs another version. */
function statOf(bytes: Buffer): SourceStat {
  return { size: bytes.length, version: createHash('sha1').update(bytes).digest('base64url') };
}

/** Creates a source of the assets in a single executable application. */
export function createSeaFiles(
  given: SeaFilesOptions | undefined,
  sea: Sea = process.getBuiltinModule('node:sea'),
): StaticSource {
  const { prefix, keys } = resolveOptions(SEA_FILES, given, RULES);
  if (!sea.isSea()) throw new Error('seaFiles: this process is not a single executable application');
  const known = keys ?? sea.getAssetKeys?.();
  if (known === undefined) {
    throw new Error(
      'seaFiles: this version of Node cannot list assets; pass their keys as the option "keys"',
    );
  }
  const files = new Map<string, { readonly key: string; stat: SourceStat | undefined }>();
  const directories = new DirectoryPaths();
  for (const key of known) {
    const path = key.startsWith(prefix) ? toSourcePath(key.slice(prefix.length)) : undefined;
    if (path === undefined) continue;
    files.set(path, { key, stat: undefined });
    directories.add(path);
  }
  // The bytes are in read-only memory of the executable: they are not copied.
  const bytesOf = (key: string): Buffer => {
    const asset = sea.getRawAsset(key);
    return typeof asset === 'string' ? Buffer.from(asset) : Buffer.from(asset);
  };
  return {
    stat(path) {
      const file = files.get(path);
      if (file === undefined) return directories.has(path) ? 'directory' : undefined;
      file.stat ??= statOf(bytesOf(file.key));
      return file.stat;
    },
    open(path, { start, end }) {
      return bytesOf(files.get(path)?.key ?? path).subarray(start, end + 1);
    },
    list: () => files.keys(),
  };
}
