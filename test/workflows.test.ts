import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const folder = resolve(__dirname, '../.github/workflows');
const workflows = readdirSync(folder).map(
  (name) => [name, readFileSync(resolve(folder, name), 'utf8')] as const,
);

/** The text of each job of a workflow. */
function jobsOf(text: string): Record<string, string> {
  const jobs = text.slice(text.indexOf('\njobs:\n')).split(/^ {2}(?=\w+:$)/m);
  return Object.fromEntries(jobs.slice(1).map((job) => [job.slice(0, job.indexOf(':')), job]));
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
    expect(readFileSync(resolve(__dirname, '../.ci/run'), 'utf8')).toMatch(/^npm ci --ignore-scripts$/m);
  },
);

describe('release.yml', () => {
  const { test, publish } = jobsOf(Object.fromEntries(workflows)['release.yml'] as string);

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
});
