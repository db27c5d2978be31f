import { parseArgs } from 'node:util';
import { type Command, UsageError } from './command.ts';

/** Validates trusted documents against a schema. */
export const check: Command = async (args, output) => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      schema: { type: 'string' },
      documents: { type: 'string', multiple: true },
      limit: { type: 'string', multiple: true, default: [] },
      json: { type: 'boolean', default: false },
      quiet: { type: 'boolean', default: false },
    },
  });
  const { schema, documents, json, quiet } = values;
  if (positionals.length > 0) throw new UsageError(`unexpected argument "${positionals[0]}"`);
  if (schema === undefined) throw new UsageError('no schema; pass its file with --schema');
  if (documents === undefined)
    throw new UsageError('no documents; pass their file or directory with --documents');
  const limits = Object.fromEntries(values.limit.map(toLimit));
  // Only this command needs the package graphql.
  const { checkDocuments, formatReport } = await import('./check-documents.ts');
  const report = await checkDocuments(schema, documents, limits);
  const isFit = report.unfit.length === 0;
  if (json) output.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
  else if (!isFit) output.stderr.write(formatReport(report));
  else if (!quiet) output.stdout.write(formatReport(report));
  return isFit ? 0 : 1;
};

function toLimit(text: string): readonly [name: string, value: number] {
  const [name = '', value = ''] = text.split('=');
  if (name !== '' && /^\d+$/.test(value) && Number(value) > 0) return [name, Number(value)];
  throw new UsageError(`--limit is "${text}"; expected: the name of a limit and a number, such as depth=20`);
}
