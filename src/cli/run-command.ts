import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { Precompressed } from '../../types/static.ts';
import { canEncode } from '../static/compression/encoders.ts';
import { type CompressReport, compressDirectory } from './compress-directory.ts';

/** The streams of a process. */
export interface Output {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
}

const CODINGS: readonly Precompressed[] = ['br', 'zstd', 'gzip'];
const DEFAULT_MIN_BYTES = 1024;

const HELP = `Usage: espalier compress [options] <directory...>

Writes compressed copies of the files of a directory (app.js.br, app.js.zst, app.js.gz) for the option
"precompressed" of staticFiles. Copies that are up to date are kept.

  --coding <name>     br, zstd or gzip; may be repeated (default: all that this version of Node can create)
  --min-bytes <n>     smallest file to compress (default: ${DEFAULT_MIN_BYTES})
  --jobs <n>          files that are compressed simultaneously (default: the number of processors)
  --check             write nothing; exit with 1 if a copy is missing or out of date
  --quiet             print errors only
  --help              print this text

Exit codes: 0 done, 1 a file could not be compressed or --check failed, 2 wrong arguments.
`;

class UsageError extends Error {}

interface Arguments {
  readonly directories: readonly string[];
  readonly codings: readonly Precompressed[];
  readonly minBytes: number;
  readonly jobs: number;
  readonly check: boolean;
  readonly quiet: boolean;
}

/** Runs the command and returns its exit code. */
export async function runCommand(args: readonly string[], output: Output): Promise<0 | 1 | 2> {
  let parsed: Arguments | 'help';
  try {
    parsed = parseArguments(args);
  } catch (error) {
    output.stderr.write(`espalier: ${error instanceof Error ? error.message : String(error)}\n\n${HELP}`);
    return 2;
  }
  if (parsed === 'help') {
    output.stdout.write(HELP);
    return 0;
  }
  let exitCode: 0 | 1 = 0;
  for (const directory of parsed.directories) {
    const report = await compressDirectory(directory, parsed);
    for (const message of report.errors) output.stderr.write(`espalier: ${message}\n`);
    if (!parsed.quiet) output.stdout.write(format(directory, report, parsed.check));
    if (report.errors.length > 0 || (parsed.check && countOf(report, 'written') > 0)) exitCode = 1;
  }
  return exitCode;
}

function parseArguments(args: readonly string[]): Arguments | 'help' {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      coding: { type: 'string', multiple: true },
      'min-bytes': { type: 'string' },
      jobs: { type: 'string' },
      check: { type: 'boolean', default: false },
      quiet: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  const [command, ...directories] = positionals;
  if (command === undefined) throw new UsageError('no command; expected: compress');
  if (command !== 'compress') throw new UsageError(`unknown command "${command}"; expected: compress`);
  if (directories.length === 0) throw new UsageError('no directory; pass the directory of the files');
  return {
    directories,
    codings: values.coding === undefined ? CODINGS.filter(canEncode) : values.coding.map(toCoding),
    minBytes: toCount('--min-bytes', values['min-bytes'], DEFAULT_MIN_BYTES, 0),
    jobs: toCount('--jobs', values.jobs, availableParallelism(), 1),
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

function toCount(name: string, text: string | undefined, fallback: number, least: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && Number.isSafeInteger(value)) return value;
  throw new UsageError(`${name} is "${text}"; expected: a whole number from ${least}`);
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
