/** @tags once slow */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { makeFolder } from '../kit.ts';

interface Lockfile {
  packages: Record<string, { resolved?: string; integrity?: string; optionalDependencies?: object }>;
}

const root = resolve(__dirname, '../..');
const lockfiles = [
  'package-lock.json',
  'test/neighbours/package-lock.json',
  'test/neighbours/recipes/package-lock.json',
  'site/package-lock.json',
];
const read = (file: string): Lockfile => JSON.parse(readFileSync(join(root, file), 'utf8'));

describe.each(lockfiles)('%s', (file) => {
  const { packages } = read(file);

  it(`${file} names no registry, so that npm installs packages from the configured registry`, () => {
    expect(readFileSync(join(root, file), 'utf8')).not.toMatch(/https?:\/\/[^"]*(registry|\.tgz)/);
    const resolved = Object.values(packages).flatMap(({ resolved }) => resolved ?? []);
    expect(resolved.filter((path) => path !== 'src/graphiql/app')).toEqual([]);
  });

  it(`${file} has the checksum of every package`, () => {
    const installed = Object.entries(packages).filter(([path]) => /(^|\/)node_modules\//.test(path));
    const without = installed.filter(([, { integrity, resolved }]) => !integrity && !resolved);
    expect(installed.length).toBeGreaterThan(2);
    expect(without).toEqual([]);
  });

  it(`${file} lists the optional packages of other platforms`, () => {
    const paths = Object.keys(packages);
    const optional = Object.values(packages).flatMap((entry) =>
      Object.keys(entry.optionalDependencies ?? {}),
    );
    const missing = optional.filter((name) => !paths.some((path) => path.endsWith(`node_modules/${name}`)));
    expect(missing).toEqual([]);
  });
});

describe('npm ci', () => {
  const folder = makeFolder();

  it('npm ci accepts the lockfile, and every package accepts this version of Node', () => {
    for (const file of ['package.json', 'package-lock.json', '.npmrc', 'src/graphiql/app/package.json']) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      cpSync(join(root, file), join(folder, file));
    }
    const args = ['ci', '--dry-run', '--offline', '--engine-strict', '--ignore-scripts'];
    const { status, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8' });
    expect([stderr.match(/^npm error.*/gm), status]).toEqual([null, 0]);
  });
});
