/** @tags once */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Snippet, snippets } from '../snippets.ts';

// Code blocks of the guides that use packages of test/neighbours: `ts neighbours`, and `ts before` of the migration guides.

jest.setTimeout(120_000);

const root = resolve(__dirname, '../..');
// The code in this folder finds the packages of test/neighbours.
const folder = join(__dirname, 'artifacts', 'guides');
const all = [...snippets('ts neighbours'), ...snippets('ts before')];

/** The packages that a snippet imports, without those of Node. */
const packagesOf = ({ code }: Snippet): string[] => [
  ...new Set(
    [...code.matchAll(/(?:from|import) '((?:@[\w.-]+\/)?[\w-]+)[^']*'/g)].flatMap(([, name]) =>
      name === undefined || name === 'node' || name === 'espalier' ? [] : [name],
    ),
  ),
];
const isInstalled = (name: string): boolean =>
  [join(__dirname, 'node_modules'), join(root, 'node_modules')].some((each) => existsSync(join(each, name)));
/** Packages that nobody installs here: code that uses them is compiled against declarations without types. */
const missing = [...new Set(all.flatMap(packagesOf))].filter((name) => !isInstalled(name));

/** A declaration of a package with the names that the guides import. */
function declarationOf(name: string): string {
  const code = all.map((snippet) => snippet.code).join('\n');
  const lists = code.matchAll(new RegExp(`import ([^;]*?) from '${name}'`, 'g'));
  const names = new Set(
    [...lists].flatMap(([, list]) => (list as string).match(/(?<=[{,] *(?:type )?)\w+(?= *[,}])/g) ?? []),
  );
  const members = [...names].map((each) => `export const ${each}: any; export type ${each} = any;`);
  return `declare module '${name}' { const value: any; export default value; ${members.join(' ')} }\ndeclare module '${name}/*';\n`;
}

beforeAll(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(root, join(folder, 'node_modules', 'espalier'));
  writeFileSync(
    join(folder, 'missing.d.ts'),
    `${missing.map(declarationOf).join('')}declare module 'graphql-upload/*';\n`,
  );
  for (const { name, code } of all) writeFileSync(join(folder, `${name}.mts`), `${code}\nexport {};\n`);
  const config = {
    extends: '../../../tsconfig.json',
    compilerOptions: {
      rootDir: '../../../..',
      typeRoots: ['../../../../node_modules/@types'],
      skipLibCheck: true,
      noUnusedLocals: false,
      noUnusedParameters: false,
      erasableSyntaxOnly: false,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
      paths: { espalier: ['../../../../middleware/index.ts'], 'espalier/*': ['../../../../middleware/*.ts'] },
    },
    include: ['*.mts', '*.d.ts', '../../../../src/**/*.d.ts'],
    exclude: [],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
});

it('the code of the guides that uses other packages compiles', () => {
  expect(all.length).toBeGreaterThan(0);
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  expect(spawnSync(process.execPath, [tsc, '-p', folder], { cwd: root, encoding: 'utf8' }).stdout).toBe('');
});
