import type { Precompressed } from '../../../types/static.ts';
import { debug } from '../../logging/debug.ts';
import { isPermissionError } from '../disk/file-errors.ts';
import { type NotFound, notFound, openInsideRoot, type ReadableFile } from '../disk/open-inside-root.ts';
import type { RootDirectory } from '../disk/root-directory.ts';
import type { StaticSettings } from '../options.ts';
import { type CopyToCompare, compareCopy } from './compare-copy.ts';
import { type Dependency, dependencyOf, statOrUndefined } from './resolve-file.ts';
import { type LoadOptions, type Snapshot, takeSnapshot } from './snapshot.ts';

/** Extensions of compressed copies. */
export const COPY_EXTENSIONS: Readonly<Record<Precompressed, string>> = {
  br: '.br',
  zstd: '.zst',
  gzip: '.gz',
};

/** A compressed copy of a file in the same directory. */
interface PrecompressedFile {
  readonly coding: Precompressed;
  readonly path: string;
  readonly realPath: string;
  readonly snapshot: Snapshot;
}

/**
 * Finds the compressed copies of a file in the order of the option, and all paths whose stat decided the
 * result.
 */
export async function findPrecompressed(
  root: RootDirectory,
  path: string,
  source: Snapshot,
  settings: StaticSettings,
  options: LoadOptions,
): Promise<{ files: PrecompressedFile[]; dependencies: Dependency[] }> {
  const files: PrecompressedFile[] = [];
  const dependencies: Dependency[] = [];
  for (const coding of settings.precompressed) {
    const copyPath = path + COPY_EXTENSIONS[coding];
    const stats = await statOrUndefined(copyPath);
    if (stats?.isFile() !== true) {
      dependencies.push(dependencyOf(copyPath, stats));
      continue;
    }
    const file = await openCopy(root, copyPath, stats, settings);
    const result =
      file === undefined
        ? 'it was moved'
        : 'kind' in file
          ? file.reason
          : await readCopy({ file, coding, source, settings, options });
    if (typeof result === 'string') {
      debug.static('the compressed copy %s is ignored: %s', copyPath, result);
      dependencies.push(dependencyOf(copyPath, stats));
    } else {
      dependencies.push({ path: copyPath, version: result.snapshot.version });
      files.push({ coding, path: copyPath, ...result });
    }
  }
  return { files, dependencies };
}

/** Opens a compressed copy. The file itself is sent when the process may not read its copy. */
async function openCopy(
  ...copy: Parameters<typeof openInsideRoot>
): Promise<ReadableFile | NotFound | undefined> {
  try {
    return await openInsideRoot(...copy);
  } catch (error) {
    if (isPermissionError(error)) return notFound('no permission to read it');
    throw error;
  }
}

/** Reads a compressed copy; returns the reason if it cannot be used. */
async function readCopy({
  file,
  coding,
  source,
  settings,
  options,
}: Omit<CopyToCompare, 'copy'> & {
  settings: StaticSettings;
  options: LoadOptions;
}): Promise<{ realPath: string; snapshot: Snapshot } | string> {
  try {
    const snapshot = await takeSnapshot(file, settings, options);
    if (snapshot === undefined) return 'it changed while it was read';
    if (snapshot === 'not-a-file') return 'it is not a regular file';
    const mismatch = await compareCopy({ file, copy: snapshot, coding, source });
    return mismatch ?? { realPath: file.realPath, snapshot };
  } finally {
    file.close();
  }
}
