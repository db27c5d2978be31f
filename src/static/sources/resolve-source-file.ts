import type { SourceStat, StaticSource } from '../../../types/sources.ts';
import { type NotFound, notFound } from '../disk/open-inside-root.ts';
import { candidatesFor } from '../file/resolve-file.ts';
import type { StaticSettings } from '../options.ts';

/** A path whose stat decided the result. */
export interface SourceDependency {
  readonly path: string;
  /** The version of the file; 'directory', or undefined if there was nothing. */
  readonly version: string | undefined;
}

/** A file that a URL path leads to, a directory, or nothing, with the paths that decided it. */
interface SourceResolution {
  readonly found:
    | { readonly kind: 'file'; readonly path: string; readonly stat: SourceStat }
    | { readonly kind: 'directory' }
    | NotFound;
  readonly dependencies: readonly SourceDependency[];
}

/** Finds the file of a source for a URL path, in the same order as in a directory. */
export async function resolveSourceFile(
  source: StaticSource,
  urlPath: string,
  settings: StaticSettings,
): Promise<SourceResolution> {
  const dependencies: SourceDependency[] = [];
  const stat = async (path: string): Promise<SourceStat | 'directory' | undefined> => {
    const result = await source.stat(path);
    dependencies.push({ path, version: versionOf(result) });
    return result;
  };
  let isDirectory = false;
  for (const path of candidatesFor(urlPath, settings)) {
    const result = await stat(path);
    if (result === undefined) continue;
    if (result !== 'directory') return { found: { kind: 'file', path, stat: result }, dependencies };
    if (path !== urlPath) continue;
    isDirectory = true;
    if (!settings.cleanUrls && (await hasIndex(urlPath, settings, stat))) break;
  }
  const found = isDirectory && settings.html ? ({ kind: 'directory' } as const) : notFound('no such file');
  return { found, dependencies };
}

async function hasIndex(
  urlPath: string,
  { extensions, index }: StaticSettings,
  stat: (path: string) => Promise<SourceStat | 'directory' | undefined>,
): Promise<boolean> {
  if (extensions.length === 0) return true;
  for (const name of index) {
    const result = await stat(`${urlPath}/${name}`);
    if (result !== undefined && result !== 'directory') return true;
  }
  return false;
}

/** Returns the part of a stat that changes with the file. */
export function versionOf(stat: SourceStat | 'directory' | undefined): string | undefined {
  return stat === undefined || stat === 'directory' ? stat : `file ${stat.size} ${stat.version}`;
}
