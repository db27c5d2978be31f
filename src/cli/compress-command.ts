import { stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { Precompressed } from '../../types/static.ts';
import { canEncode } from '../static/compress.ts';
import { type Output, UsageError } from './command.ts';
import { type CompressReport, compressDirectory } from './compress-directory.ts';

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
  readonly jobs: number;
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
    if (report.errors.length > 0 || (parsed.check && countOf(report, 'written') > 0)) exitCode = 1;
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

function countOf({ codings }: CompressReport, name: 'written'): number {
  return [...codings.values()].reduce((sum, counts) => sum + counts[name], 0);
}
