/** @tags once */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const folder = resolve(__dirname, '../../.github/workflows');
const workflows = readdirSync(folder).map(
  (name) => [name, readFileSync(resolve(folder, name), 'utf8')] as const,
);

/** The text of each job of a workflow. */
function jobsOf(text: string): Record<string, string> {
  const jobs = text.slice(text.indexOf('\njobs:\n')).split(/^ {2}(?=\w+:$)/m);
  return Object.fromEntries(jobs.slice(1).map((job) => [job.slice(0, job.indexOf(':')), job]));
}

/** The files of the repository whose paths start with a text, which ends in the name of a folder or in a part of a file's. */
function filesWith(start: string): string[] {
  const root = resolve(__dirname, '../..');
  const parent = dirname(start);
  return readdirSync(resolve(root, parent))
    .map((name) => `${parent}/${name}`)
    .filter((path) => path.startsWith(start))
    .flatMap((path) =>
      path.endsWith('.ts') ? path : readdirSync(resolve(root, path)).map((name) => `${path}/${name}`),
    );
}

it.each(workflows)('%s pins every action to a commit', (_name, text) => {
  const actions = [...text.matchAll(/uses: (\S+)/g)].map((match) => match[1]);
  expect(actions.length).toBeGreaterThan(0);
  expect(actions.filter((action) => !/^actions\/[\w-]+@[0-9a-f]{40}$/.test(action as string))).toEqual([]);
});

it.each(workflows)(
  '%s installs packages only by .ci/run, which uses the lockfile and runs no install script',
  (_name, text) => {
    expect(text).not.toMatch(/npm (install|i|ci)\b/);
    expect(readFileSync(resolve(__dirname, '../../.ci/run'), 'utf8')).toMatch(/^npm ci --ignore-scripts$/m);
  },
);

describe('ci.yml', () => {
  const { portable = '' } = jobsOf(Object.fromEntries(workflows)['ci.yml'] as string);
  const script = readFileSync(resolve(__dirname, '../../.ci/run'), 'utf8');

  it('ci.yml runs every part of .ci/run, and no other', () => {
    const { part = '' } = jobsOf(Object.fromEntries(workflows)['ci.yml'] as string);
    const [, parts] = /^ {8}part: \[(.*)\]$/m.exec(part) ?? [];
    const [, known] = /^ {2}all \| (.*) \| portable\) ;;$/m.exec(script) ?? [];
    expect(parts?.split(', ')).toEqual(known?.split(' | '));
    expect(part).toMatch(/- run: bash \.ci\/run \$\{\{ matrix\.part \}\}\n/);
  });

  it('ci.yml runs the portable tests on Windows and macOS, with the oldest and a current version of Node', () => {
    expect(portable).toMatch(/^ {8}os: \[windows-latest, macos-latest\]$/m);
    expect(portable).toMatch(/^ {8}node: \[20, 24\]$/m);
    expect(portable).toMatch(/runs-on: \$\{\{ matrix\.os \}\}\n/);
    expect(portable).toMatch(/node-version: \$\{\{ matrix\.node \}\}\n/);
    // PowerShell is the default on Windows.
    expect(portable).toContain('- run: bash .ci/run portable\n        shell: bash\n');
    expect(portable).not.toMatch(/container:|continue-on-error/);
  });

  it('the portable tests of .ci/run exist, and need no program that the script would install', () => {
    const [, block = ''] = /if \[ "\$part" = portable \]; then\n([\s\S]*?)\nfi\n/.exec(script) ?? [];
    expect(block).toContain('  npm run test:portable ');
    const { scripts } = JSON.parse(readFileSync(resolve(__dirname, '../../package.json'), 'utf8'));
    const matches = (scripts['test:portable'] as string)
      .split(' ')
      .filter((word) => word.startsWith('test/'))
      .map(filesWith);
    expect(matches.length).toBeGreaterThan(2);
    for (const found of matches) expect(found.some((file) => file.endsWith('.test.ts'))).toBe(true);
    expect(block).not.toContain('apt-get');
    expect(script.indexOf(block)).toBeLessThan(script.indexOf('apt-get'));
    for (const file of matches.flat().filter((name) => name.endsWith('.ts'))) {
      const text = readFileSync(resolve(__dirname, '../..', file), 'utf8');
      expect([file, text.match(/redis-server|chromium|\/proc\/|mkfifo|\/tmp\//g)]).toEqual([file, null]);
    }
  });

  it('.ci/run fails when the packages of a clone are too large or take too long to install', () => {
    expect(script).toContain(
      'started=$SECONDS\nnpm ci --ignore-scripts\nnode scripts/check-clone.mjs "$((SECONDS - started))"\n',
    );
  });
});

describe('release.yml', () => {
  const { test, publish, list } = jobsOf(Object.fromEntries(workflows)['release.yml'] as string);

  it('release.yml tests in a job that cannot publish', () => {
    expect(test).toMatch(/run: bash \.ci\/run/);
    expect(test).toMatch(/permissions:\n {6}contents: read\n {4}\w/);
    expect(test).not.toMatch(/id-token|environment:/);
  });

  it('release.yml publishes the tarball of the tested build, and runs no other code with the token', () => {
    expect(publish).toMatch(/needs: test\n/);
    expect(publish).toMatch(/permissions:\n {6}id-token: write\n/);
    const commands = [...(publish as string).matchAll(/run: (.*)/g)].map((match) => match[1]);
    expect(commands).toEqual(['npm publish ./espalier-*.tgz --ignore-scripts --provenance --access public']);
    expect(publish).not.toMatch(/actions\/checkout/);
  });

  it('release.yml adds the bill of materials of the tested build to the release, by a job that runs no other code', () => {
    expect(test).toContain('- run: node scripts/sbom.mjs > artifacts/espalier.cdx.json\n');
    expect(test).toContain('            artifacts/espalier.cdx.json\n');
    expect(list).toMatch(/needs: publish\n/);
    const commands = [...(list as string).matchAll(/run: (.*)/g)].map((match) => match[1]);
    expect(commands).toEqual([
      'gh release create "$GITHUB_REF_NAME" --verify-tag --generate-notes espalier-*.tgz espalier.cdx.json',
    ]);
    expect(list).not.toMatch(/actions\/checkout|id-token/);
  });
});
