import { VERSION } from '../diagnostics/version.ts';
import { type Command, check, init, type Output, UsageError } from './commands.ts';
import { compress, DEFAULT_MIN_BYTES } from './compress.ts';

interface Help {
  readonly usage: string;
  readonly text: string;
}

const COMMANDS: ReadonlyMap<string, Help & { readonly run: Command }> = new Map([
  [
    'compress',
    {
      run: compress,
      usage: 'espalier compress [options] <directory...>',
      text: `espalier compress writes compressed copies of the files of a directory (app.js.br, app.js.zst, app.js.gz) for
the option "precompressed" of staticFiles. Copies that are up to date are kept.

  --coding <name>     br, zstd or gzip; may be repeated (default: all that this version of Node can create)
  --min-bytes <n>     smallest file to compress (default: ${DEFAULT_MIN_BYTES})
  --jobs <n>          files that are compressed simultaneously (default: the number of processors; at most 1024)
  --check             write nothing; exit with 1 if a copy is missing or out of date

Example: espalier compress --coding br --coding gzip dist
`,
    },
  ],
  [
    'check',
    {
      run: check,
      usage: 'espalier check [options] --schema <file> (--documents <path> | --against <file>)',
      text: `espalier check validates the trusted documents of the option "documents" of graphqlHTTP, or finds the changes
of a schema that break clients.

  --schema <file>     SDL (.graphql), an introspection result (.json), or a module that exports the schema
  --documents <path>  a manifest, or a directory of <id>.graphql files; may be repeated
  --limit <name=n>    a limit of the server, such as depth=20; may be repeated (default: the limits of graphqlHTTP)
  --against <file>    the earlier schema
  --usage <file>      a file of the option "usage" of graphqlHTTP; may be repeated. Breaking changes of what no client
                      has used are safe
  --markdown          print the changes as Markdown
  --json              print the report as JSON

Examples: espalier check --schema schema.graphql --documents persisted-documents.json --limit depth=20
          espalier check --schema schema.graphql --against old.graphql --usage usage.json
`,
    },
  ],
  [
    'init',
    {
      run: init,
      usage: 'espalier init [folder]',
      text: `espalier init creates a project with TypeScript, Express, a GraphQL API, uploads, subscriptions, a page built by
Vite, tests and a Dockerfile, in a new or an empty folder (default: the working directory). A repository and a licence
may be in it.

Example: espalier init my-app
`,
    },
  ],
]);

const COMMON = `Options of all commands:

  --quiet             print errors only
  --help              print the help of the command, or of all commands
  --version           print the version of espalier

Exit codes: 0 done, 1 the folder is not empty, a file could not be compressed, --check failed, a document
does not fit or a change breaks clients, 2 wrong arguments, or files could not be read or written.
`;

/** Returns the help of one command, or of all if the name is not the name of a command. */
function helpOf(name: string | undefined): string {
  const shown = helpsOf(name);
  return `${usageOf(shown)}\n${shown.map(({ text }) => `${text}\n`).join('')}${COMMON}`;
}

function helpsOf(name: string | undefined): readonly Help[] {
  const command = COMMANDS.get(name ?? '');
  return command === undefined ? [...COMMANDS.values()] : [command];
}

const usageOf = (shown: readonly Help[]): string =>
  `Usage: ${shown.map(({ usage }) => usage).join('\n       ')}\n`;

/** Runs the command and returns its exit code. */
export async function runCommand(args: readonly string[], output: Output): Promise<0 | 1 | 2> {
  const [name, ...rest] = args;
  if (name === 'help' || args.includes('--help') || args.includes('-h')) {
    output.stdout.write(helpOf(name === 'help' ? rest[0] : name));
    return 0;
  }
  if (name === '--version' || name === '-v') {
    output.stdout.write(`${VERSION}\n`);
    return 0;
  }
  const command = COMMANDS.get(name ?? '');
  try {
    if (command !== undefined) return await command.run(rest, output);
    const names = [...COMMANDS.keys()].join(', ');
    const problem = name === undefined ? 'no command' : `unknown command "${name}"`;
    throw new UsageError(`${problem}; expected: ${names}. espalier --help explains them`);
  } catch (error) {
    // Errors of `parseArgs` have a code.
    const isUsage =
      error instanceof UsageError || String((error as { code?: unknown }).code).startsWith('ERR_PARSE');
    // The error is the last line: a terminal would scroll it away.
    if (isUsage) output.stderr.write(`${command === undefined ? usageOf(helpsOf(name)) : helpOf(name)}\n`);
    output.stderr.write(`espalier: ${error instanceof Error ? error.message : String(error)}\n`);
    return 2;
  }
}
