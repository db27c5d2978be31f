import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import * as nodePath from 'node:path';
import { parseArgs } from 'node:util';

/** The streams of a process. */
export interface Output {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
}

/** Wrong arguments of a command. */
export class UsageError extends Error {}

/** Runs a command with its arguments; returns the exit code. */
export type Command = (args: readonly string[], output: Output) => Promise<0 | 1>;

/** Validates trusted documents against a schema, or compares the schema with an earlier one. */
export const check: Command = async (args, output) => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      schema: { type: 'string' },
      documents: { type: 'string', multiple: true },
      limit: { type: 'string', multiple: true, default: [] },
      against: { type: 'string' },
      usage: { type: 'string', multiple: true, default: [] },
      markdown: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      quiet: { type: 'boolean', default: false },
    },
  });
  const { schema, documents, against, limit, usage, markdown } = values;
  if (positionals.length > 0) throw new UsageError(`unexpected argument "${positionals[0]}"`);
  if (schema === undefined) throw new UsageError('no schema; pass its file with --schema');
  if (documents === undefined && against === undefined) {
    throw new UsageError(
      'no documents; pass their file or directory with --documents, or an earlier schema with --against',
    );
  }
  if (documents !== undefined && against !== undefined)
    throw new UsageError('--documents and --against are two checks; run the command for each of them');
  if (against !== undefined && limit.length > 0) throw new UsageError('--limit needs --documents');
  if (against === undefined && (usage.length > 0 || markdown))
    throw new UsageError(`${markdown ? '--markdown' : '--usage'} needs --against`);
  if (markdown && values.json) throw new UsageError('--json and --markdown are two formats; pass one');
  return against === undefined
    ? await checkDocuments(schema, documents ?? [], values, output)
    : await checkSchema(schema, against, values, output);
};

interface CheckArguments {
  readonly limit: readonly string[];
  readonly usage: readonly string[];
  readonly markdown: boolean;
  readonly json: boolean;
  readonly quiet: boolean;
}

async function checkDocuments(
  schema: string,
  documents: readonly string[],
  { limit, json, quiet }: CheckArguments,
  output: Output,
): Promise<0 | 1> {
  const limits = Object.fromEntries(limit.map(toLimit));
  // Only this command needs the package graphql.
  const { checkDocuments: run, formatReport } = await import('./check-documents.ts');
  const report = await run(schema, documents, limits);
  const isFit = report.unfit.length === 0;
  if (json) output.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
  else if (!isFit) output.stderr.write(formatReport(report));
  else if (!quiet) output.stdout.write(formatReport(report));
  return isFit ? 0 : 1;
}

async function checkSchema(
  schema: string,
  against: string,
  { usage, markdown, json, quiet }: CheckArguments,
  output: Output,
): Promise<0 | 1> {
  const { checkSchema: run, formatSchemaMarkdown, formatSchemaReport } = await import('./check-schema.ts');
  const report = await run(schema, against, usage);
  const isSafe = report.changes.every(({ level }) => level !== 'breaking');
  if (json) output.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
  else if (markdown) output.stdout.write(formatSchemaMarkdown(report));
  else if (!isSafe) output.stderr.write(formatSchemaReport(report));
  else if (!quiet) output.stdout.write(formatSchemaReport(report));
  return isSafe ? 0 : 1;
}

function toLimit(text: string): readonly [name: string, value: number] {
  const [name = '', value = ''] = text.split('=');
  if (name !== '' && /^\d+$/.test(value) && Number(value) > 0) return [name, Number(value)];
  throw new UsageError(`--limit is "${text}"; expected: the name of a limit and a number, such as depth=20`);
}

/** The files of a project by path, with slashes. */
type Template = Readonly<Record<string, string>>;

/** Creates a project from the template; returns the exit code. */
export async function init(args: readonly string[], output: Output): Promise<0 | 1> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { quiet: { type: 'boolean', default: false } },
  });
  const [folder = '.', ...others] = positionals;
  if (others.length > 0) throw new UsageError('more than one folder; pass the folder of the project');
  const { default: template } = await import('#template');
  const target = nodePath.resolve(folder);
  const files = projectFiles(target, template);
  const written = new Set(Object.keys(template).map((file) => file.split('/')[0]));
  const existing = (await listFolder(target)).filter((name) => written.has(name) || !KEPT.test(name));
  if (existing.length > 0) {
    const message = `${target} is not empty: it contains ${existing[0]}. Pass a new or an empty folder`;
    output.stderr.write(`espalier: ${message}\n`);
    return 1;
  }
  await writeFiles(files);
  if (!values.quiet) output.stdout.write(describe(folder, files.size));
  return 0;
}

/**
 * Returns the contents of the files of a project by their paths in the file system. `path` is another one than
 * that of the system in tests only.
 */
export function projectFiles(
  target: string,
  template: Template,
  path: nodePath.PlatformPath = nodePath,
): Map<string, string> {
  const name = packageName(path.basename(target));
  return new Map(
    Object.entries(template).map(([file, text]) => [
      path.join(target, ...file.split('/')),
      file === 'package.json' ? text.replace(/^( *"name": )".*"/m, `$1"${name}"`) : text,
    ]),
  );
}

/** Returns a name that npm accepts. */
function packageName(folder: string): string {
  const name = folder
    .toLowerCase()
    .replaceAll(/[^a-z0-9._~-]+/g, '-')
    .replaceAll(/^[-._]+|-+$/g, '');
  return name === '' ? 'app' : name.slice(0, 214);
}

/** What hosts of repositories, editors and systems put into a folder in which a project begins. */
const KEPT = /^(?:\.git.*|\.idea|\.vscode|\.DS_Store|licen[cs]e(?:\.\w+)?)$/i;

/** The entries of a folder; none if there is no folder. */
function listFolder(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
}

/** Writes all files. After an error none of them is left. */
async function writeFiles(files: ReadonlyMap<string, string>): Promise<void> {
  const written: string[] = [];
  try {
    for (const [file, text] of files) {
      const created = await mkdir(nodePath.dirname(file), { recursive: true });
      if (created !== undefined) written.push(created);
      await writeFile(file, text, { flag: 'wx' });
      written.push(file);
    }
  } catch (error) {
    for (const path of written) await rm(path, { recursive: true, force: true });
    throw error;
  }
}

function describe(folder: string, count: number): string {
  const enter = folder === '.' ? '' : `  cd ${folder}\n`;
  return `${count} files were created. Next:\n\n${enter}  npm install\n  npm run dev\n`;
}
