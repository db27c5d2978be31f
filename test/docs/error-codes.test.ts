/** @tags once */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { limitExceeded } from '../../src/core/limits.ts';

const root = resolve(__dirname, '../..');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** The codes of multer, of Node and of process warnings, which clients never see, and other constants of the same form. */
const INTERNAL =
  /^(?:LIMIT_FILE_COUNT|LIMIT_FIELD_\w+|MISSING_FIELD_NAME|MODULE_NOT_FOUND|NODE_ENV|CLIENT_ABORTED|ESPALIER_\w+|ERR_\w+)$/;
function codesOfSources(): string[] {
  const codes = new Set<string>();
  for (const name of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
    // The changes of graphql-js have codes of their own.
    if (!name.endsWith('.ts') || name.startsWith('cli')) continue;
    for (const [, code] of read(join('src', name)).matchAll(/'([A-Z]+(?:_[A-Z]+)+)'/g))
      codes.add(code as string);
  }
  const limits = Object.keys(messagesOfLimits()).map(
    (limit) => limitExceeded(limit as Parameters<typeof limitExceeded>[0], 1).extensions['code'] as string,
  );
  return [...codes, ...limits].filter((code) => !INTERNAL.test(code));
}

/** The names of the limits, as written in the source. */
function messagesOfLimits(): Record<string, true> {
  const source = read('src/core/limits.ts');
  return Object.fromEntries([...source.matchAll(/^ {2}(\w+): \(max/gm)].map(([, name]) => [name, true]));
}

it('docs/error-codes.md lists exactly the error codes that the sources use', () => {
  const listed = [...read('docs/error-codes.md').matchAll(/^\| ((?:`[A-Z_]+`,? )+)\|/gm)].flatMap(
    ([, codes = '']) => codes.match(/[A-Z_]+/g) ?? [],
  );
  expect(listed.toSorted()).toEqual([...new Set(codesOfSources())].toSorted());
  expect(listed.length).toBeGreaterThan(50);
});
