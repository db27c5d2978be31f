import { MAX_ERRORS, resolveCoreOptions } from '../core/options.ts';
import { nameOf, readDocuments, type TrustedText } from '../core/trusted.ts';
import { createValidator } from '../core/validate.ts';
import { readSchema } from './read-schema.ts';

interface CheckReport {
  readonly documents: number;
  /** The documents that do not fit the schema or exceed a limit. */
  readonly unfit: readonly {
    readonly id: string;
    readonly name: string | undefined;
    readonly errors: readonly { readonly message: string; readonly locations: readonly Position[] }[];
  }[];
}

interface Position {
  readonly line: number;
  readonly column: number;
}

/** Validates the documents of manifests or directories, as `graphqlHTTP` does when it is created. */
export async function checkDocuments(
  schemaFile: string,
  paths: readonly string[],
  limits: Readonly<Record<string, number>>,
): Promise<CheckReport> {
  const settings = settingsWith(limits);
  const schema = await readSchema(schemaFile);
  const validator = createValidator(settings, { maxErrors: MAX_ERRORS, hideSuggestions: false });
  const texts = await readAll(paths);
  const unfit = [...texts].flatMap(([id, trusted]) => {
    const result = validator.validate(schema, validator.parse(trusted.text));
    if (result.kind !== 'error') return [];
    const errors = result.errors.map(({ message, locations = [] }) => ({ message, locations }));
    return [{ id, name: nameOf(trusted), errors }];
  });
  return { documents: texts.size, unfit };
}

function settingsWith(limits: Readonly<Record<string, number>>) {
  const scope = { name: 'espalier check', page: 'documents' };
  return resolveCoreOptions(scope, { limits }, { rules: {}, limits: {} });
}

async function readAll(paths: readonly string[]): Promise<ReadonlyMap<string, TrustedText>> {
  const all = new Map<string, TrustedText>();
  for (const path of paths) {
    const texts = await readDocuments(path).catch((error: Error) => {
      throw new Error(`${path}: ${error.message}`);
    });
    for (const [id, trusted] of texts) {
      const known = all.get(id);
      if (known !== undefined && known.text !== trusted.text) {
        throw new Error(
          `${path}: another manifest has a different document with the id ${JSON.stringify(id)}`,
        );
      }
      all.set(id, trusted);
    }
  }
  if (all.size === 0) throw new Error(`${paths.join(', ')}: no documents`);
  return all;
}

/** Formats a report for people, with a line for each error. */
export function formatReport({ documents, unfit }: CheckReport): string {
  if (unfit.length === 0)
    return `${documents} ${documents === 1 ? 'document fits' : 'documents fit'} the schema\n`;
  const lines = unfit.flatMap(({ id, name, errors }) => [
    name === undefined ? id : `${name} (${id})`,
    ...errors.map(({ message, locations: [at] }) =>
      at === undefined ? `  ${message}` : `  ${at.line}:${at.column} ${message}`,
    ),
  ]);
  return `${lines.join('\n')}\n\n${unfit.length} of ${documents} documents do not fit the schema\n`;
}
