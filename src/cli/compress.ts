import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { chmod, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Precompressed } from '../../types/static.ts';
import { canEncode } from '../http/codings.ts';
import { encodeBest } from '../static/compress.ts';
import { COPY_EXTENSIONS, isCopyOf } from '../static/copies.ts';
import { isCompressibleType, mediaTypeOf } from '../static/media-types.ts';
import { type Output, UsageError } from './commands.ts';

const CODINGS: readonly Precompressed[] = ['br', 'zstd', 'gzip'];
/** The size of the smallest file that is compressed. */
export const DEFAULT_MIN_BYTES = 1024;
/** Each job has a file in memory. */
const MAX_JOBS = 1024;

/** The arguments of `espalier compress`. */
interface Arguments {
  readonly directories: readonly string[];
  readonly codings: readonly Precompressed[];
  readonly minBytes: number;
  /** The number of files that are compressed simultaneously. */
  readonly jobs: number;
  /** Whether to write nothing and to count the copies that would be written. */
  readonly check: boolean;
  readonly quiet: boolean;
}

/** Writes compressed copies of the files of directories; returns the exit code. */
export async function compress(args: readonly string[], output: Output): Promise<0 | 1> {
  const parsed = parseArguments(args);
  for (const directory of parsed.directories) await assertDirectory(directory);
  let exitCode: 0 | 1 = 0;
  for (const directory of parsed.directories) {
    const report = await compressDirectory(directory, parsed);
    for (const message of report.errors) output.stderr.write(`espalier: ${message}\n`);
    if (!parsed.quiet) output.stdout.write(format(directory, report, parsed.check));
    if (
      report.errors.length > 0 ||
      (parsed.check && [...report.codings.values()].some(({ written }) => written > 0))
    )
      exitCode = 1;
  }
  return exitCode;
}

async function assertDirectory(path: string): Promise<void> {
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
  if (stats?.isDirectory() === true) return;
  const reason = stats === undefined ? 'does not exist' : 'is not a directory';
  throw new Error(`${JSON.stringify(path)} ${reason}; pass the directory of the files, such as dist`);
}

function parseArguments(args: readonly string[]): Arguments {
  const { values, positionals: directories } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      coding: { type: 'string', multiple: true },
      'min-bytes': { type: 'string' },
      jobs: { type: 'string' },
      check: { type: 'boolean', default: false },
      quiet: { type: 'boolean', default: false },
    },
  });
  if (directories.length === 0) throw new UsageError('no directory; pass the directory of the files');
  return {
    directories,
    codings: values.coding === undefined ? CODINGS.filter(canEncode) : values.coding.map(toCoding),
    minBytes: toCount('--min-bytes', values['min-bytes'], DEFAULT_MIN_BYTES, [0, Number.MAX_SAFE_INTEGER]),
    jobs: toCount('--jobs', values.jobs, Math.min(availableParallelism(), MAX_JOBS), [1, MAX_JOBS]),
    check: values.check,
    quiet: values.quiet,
  };
}

function toCoding(name: string): Precompressed {
  const coding = CODINGS.find((known) => known === name);
  if (coding === undefined) throw new UsageError(`unknown coding "${name}"; expected: ${CODINGS.join(', ')}`);
  if (!canEncode(coding)) throw new UsageError(`this version of Node cannot create ${coding}`);
  return coding;
}

function toCount(
  name: string,
  text: string | undefined,
  fallback: number,
  [least, most]: readonly [number, number],
): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw new UsageError(`${name} is "${text}"; expected: a whole number from ${least} to ${most}`);
}

function format(directory: string, { codings }: CompressReport, check: boolean): string {
  const lines = [...codings].map(([coding, { written, kept, useless, sourceBytes, copyBytes }]) => {
    const percent = sourceBytes === 0 ? 0 : Math.round((copyBytes / sourceBytes) * 100);
    const counts = `${written} ${check ? 'missing or out of date' : 'written'}, ${kept} up to date, ${useless} without gain`;
    return `  ${coding.padEnd(4)} ${counts}; ${sourceBytes} to ${copyBytes} bytes (${percent} %)\n`;
  });
  return `${directory}\n${lines.join('')}`;
}

interface CodingCounts {
  written: number;
  kept: number;
  /** Files that would not become smaller. */
  useless: number;
  sourceBytes: number;
  copyBytes: number;
}

/** The results of a directory. */
interface CompressReport {
  readonly codings: ReadonlyMap<Precompressed, CodingCounts>;
  readonly errors: readonly string[];
}

const IS_COPY = /\.(?:br|zst|gz)$/;

/** Writes compressed copies of all compressible files below a directory. A file that fails does not stop the others. */
async function compressDirectory(directory: string, options: Arguments): Promise<CompressReport> {
  const none = (): CodingCounts => ({ written: 0, kept: 0, useless: 0, sourceBytes: 0, copyBytes: 0 });
  const codings = new Map(options.codings.map((coding) => [coding, none()]));
  const errors: string[] = [];
  const files = filesBelow(directory, errors);
  const work = async (): Promise<void> => {
    for await (const path of files) {
      for (const [coding, counts] of codings) {
        await compressFile(path, coding, counts, options).catch((error: unknown) => {
          errors.push(`${path}: ${error instanceof Error ? error.message : String(error)}`);
        });
      }
    }
  };
  await Promise.all(Array.from({ length: options.jobs }, work));
  return { codings, errors };
}

/**
 * Yields the regular files below a directory that may have copies. Links are not followed: they could leave
 * the directory, and `staticFiles` finds the copies next to their target. Dotfiles are skipped except
 * `.well-known`.
 */
async function* filesBelow(directory: string, errors: string[]): AsyncGenerator<string> {
  const waiting = [directory];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    const entries = await readdir(folder, { withFileTypes: true }).catch((error: Error) => {
      errors.push(error.message);
      return [];
    });
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (entry.name.startsWith('.') && entry.name !== '.well-known') continue;
      if (entry.isDirectory()) waiting.push(path);
      else if (entry.isFile() && !IS_COPY.test(entry.name) && isCompressibleType(mediaTypeOf(path)))
        yield path;
    }
  }
}

async function compressFile(
  path: string,
  coding: Precompressed,
  counts: CodingCounts,
  { minBytes, check }: Arguments,
): Promise<void> {
  const { size, mode, atime, mtime } = await stat(path);
  const copyPath = path + COPY_EXTENSIONS[coding];
  const source = await readFile(path);
  const copy = await readCopy(copyPath);
  const count = (name: 'kept' | 'written', copyBytes: number): void => {
    counts[name]++;
    counts.sourceBytes += size;
    counts.copyBytes += copyBytes;
  };
  if (copy !== undefined && (await isCopyOf(copy, source, coding))) {
    count('kept', copy.length);
    return;
  }
  const encoded = size < minBytes ? source : await encodeBest(source, coding);
  if (encoded.length >= size) {
    counts.useless++;
    // A copy of an earlier version.
    if (copy !== undefined && !check) await rm(copyPath, { force: true });
    return;
  }
  if (!check) await writeCopy(copyPath, encoded, { mode, atime, mtime });
  count('written', encoded.length);
}

/** Reading something else than a file, such as a FIFO, might never end. */
async function readCopy(path: string): Promise<Buffer | undefined> {
  try {
    return (await stat(path)).isFile() ? await readFile(path) : undefined;
  } catch {
    return undefined;
  }
}

/** Writes a copy under another name and renames it, so that servers never read a part of it. */
async function writeCopy(
  copyPath: string,
  encoded: Buffer,
  { mode, atime, mtime }: Pick<Stats, 'mode' | 'atime' | 'mtime'>,
): Promise<void> {
  const temporary = join(dirname(copyPath), `.${basename(copyPath)}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    await writeFile(temporary, encoded, { mode: mode & 0o777, flag: 'wx' });
    // The server may run as another user than the build, whose umask may exclude it.
    await chmod(temporary, mode & 0o777);
    // Repeated builds of the same files give the same archives.
    await utimes(temporary, atime, mtime);
    await rename(temporary, copyPath);
  } finally {
    await rm(temporary, { force: true });
  }
}
