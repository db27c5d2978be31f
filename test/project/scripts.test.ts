/** @tags once slow */
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { makeFolder } from '../kit.ts';

const root = resolve(__dirname, '../..');
const MISSING = { CHROMIUM_PATH: '/absent/chromium', PATH: '/absent' };

jest.setTimeout(180_000);

/** Runs scripts/test.mjs and returns its exit code and the lines of its output. */
function runTests(args: string[], env: Record<string, string> = {}) {
  const script = join(root, 'scripts/test.mjs');
  const options = {
    cwd: root,
    encoding: 'utf8',
    timeout: 150_000,
    env: { ...process.env, CI: '', ...env },
  } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], options);
  return { status, output: stdout.trim().split('\n'), errors: stderr.trim().split('\n') };
}

/** Returns the value of an expression in which the modules of scripts/test/ are declared. */
function evaluate(expression: string): unknown {
  const url = (name: string): string => new URL(`file://${root}/scripts/test/${name}.mjs`).href;
  const script = `import * as files from '${url('files')}';
    import * as passes from '${url('passes')}';
    import * as programs from '${url('programs')}';
    console.log(JSON.stringify(${expression}));`;
  return JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' }),
  );
}

describe('npm test without the programs that tests start', () => {
  const install =
    /Install: (sudo )?(apt-get install -y chromium redis-server|brew install google-chrome redis)/;

  it('npm test leaves out the files that need a missing program, and says so first and last', () => {
    const { status, output } = runTests(['test/redis/tls', 'test/project/workflows'], MISSING);
    expect(status).toBe(0);
    const notices = output.filter((line) => /^Left out: .* \(1 files and/.test(line));
    expect(notices).toEqual([expect.stringMatching(install), expect.stringMatching(install)]);
    expect([output[0], output.at(-3)]).toEqual(notices);
    expect(output.at(-1)).toBe('11 passed, 0 failed');
  });

  it('npm test fails when all files that match need a missing program', () => {
    const { status, errors } = runTests(['test/redis/tls'], MISSING);
    expect([status, errors]).toEqual([
      1,
      ['Every test that matches test/redis/tls needs a missing program.'],
    ]);
  });

  it('npm test with CI=true fails without a program, before it builds or runs a test', () => {
    const { status, output, errors } = runTests(['--build'], { ...MISSING, CI: 'true' });
    expect([status, output]).toEqual([1, ['']]);
    expect(errors).toEqual([expect.stringMatching(/^Tests need chromium, redis-server, /)]);
    expect(errors[0]).toMatch(install);
  });

  it('every program that a test starts is on the list, and the test declares it', () => {
    const programs = evaluate('programs.PROGRAMS') as { name: string; modules?: string[] }[];
    const names = programs.map(({ name }) => name);
    const everywhere = ['sh', 'bash', 'tar', 'cp', 'dd', 'mkfifo', 'touch', 'git', 'npm', 'mount', 'umount'];
    const modules = programs.flatMap((program) => program.modules ?? []);
    const undeclared = (evaluate("files.filesBelow('test')") as string[])
      .filter((file) => file.endsWith('.ts') && !modules.includes(file))
      .flatMap((file) => {
        const text = readFileSync(join(root, file), 'utf8');
        const started = [...text.matchAll(/\b(?:spawn|execFile)(?:Sync)?\)?\(\s*'([\w-]+)'/g)];
        const called = [...text.matchAll(/\b(?!needs|isAvailable)\w+\(\s*'([\w-]+)'/g)];
        return [
          ...started.map(([, name]) => name as string).filter((name) => !everywhere.includes(name)),
          ...called.map(([, name]) => name as string).filter((name) => names.includes(name)),
        ]
          .filter((name) => !text.includes(`needs('${name}')`) && !text.includes('isAvailable('))
          .map((name) => `${file} starts ${name}`);
      });
    expect(undeclared).toEqual([]);
  });
});

describe('the result of npm test', () => {
  it('npm test ends with a line per pass and the number of passed and failed tests', () => {
    const { status, output } = runTests(['test/project/workflows.test.ts']);
    expect(status).toBe(0);
    expect(output.slice(-3)).toEqual([
      expect.stringMatching(/^passed: Node \d+, graphql 16, engine compiled$/),
      '',
      '11 passed, 0 failed',
    ]);
  });

  it('npm test prints no output of tests that pass', () => {
    const { output, errors } = runTests(['test/fixtures/flaky']);
    expect([output.filter((line) => line.includes('written to the console')), errors]).toEqual([[], ['']]);
  });

  const folder = makeFolder();

  it('npm test passes when a file that failed passes alone, and prints its failure', () => {
    const { status, output } = runTests(['test/fixtures/flaky'], { FLAKY_MARKER: join(folder, 'once') });
    expect([status, output.at(-1)]).toEqual([0, '1 passed, 0 failed']);
    const title = 'a test that fails the first time passes when it runs again';
    const flaky = output.findIndex((line) => line.startsWith(`flaky: test/fixtures/flaky.test.ts, ${title}`));
    expect(output.slice(flaky).join('\n')).toMatch(/failed by chance[\s\S]*written to the console/);
  });

  it('npm test fails when a file fails twice', () => {
    const env = { FLAKY_MARKER: join(folder, 'never'), FLAKY_ALWAYS: 'true' };
    const { status, output } = runTests(['test/fixtures/flaky'], env);
    expect([status, output.at(-1)]).toEqual([1, '0 passed, 1 failed']);
    expect(output.join('\n')).not.toContain('flaky: ');
  });

  it('npm test fails when a pass ends without a report', () => {
    const { status, output } = runTests(['test/project/workflows', '--config={']);
    expect(status).toBe(1);
    expect(output.slice(-3)).toEqual([expect.stringMatching(/^failed: Node/), '', '0 passed, 1 failed']);
  });

  it.each([
    ['absent', 'No test matches absent.'],
    ['neighbours/', 'No test matches neighbours/ without --all.'],
  ])('npm test says that no test matches %j', (name, message) => {
    const { status, errors } = runTests([name, '--build']);
    expect([status, errors]).toEqual([1, [message]]);
  });
});

it('npm run test:changed finds the tests that import a changed file, and those that read pages', () => {
  const changed = evaluate("files.testsOf(['src/static/compress.ts', 'docs/cors.md'])") as string[];
  expect(changed).toContain('test/static/compress.test.ts');
  expect(changed).toContain('test/docs/snippets.test.ts');
  expect(changed).not.toContain('test/engine/json.test.ts');
});

describe('the tags of test files', () => {
  interface Described {
    readonly file: string;
    readonly tags: readonly string[];
  }
  const described = evaluate(
    'files.testFiles().map(passes.describeFile).map(({ file, tags }) => ({ file, tags: [...tags] }))',
  ) as Described[];
  const known = Object.keys(evaluate('passes.TAGS') as object);
  const filesWhere = (test: (tags: readonly string[]) => boolean): string[] =>
    described.filter(({ tags }) => test(tags)).map(({ file }) => file);

  it('the first line of every test file says with known tags what its results may depend on', () => {
    expect(filesWhere((tags) => tags.length === 0)).toEqual([]);
    expect(filesWhere((tags) => tags.some((tag) => !known.includes(tag)))).toEqual([]);
  });

  it('a test file that depends on nothing has the tag once, and no other file has it', () => {
    const variable = ['node', 'node-lines', 'graphql', 'engine'];
    expect(
      filesWhere((tags) => tags.includes('once') === tags.some((tag) => variable.includes(tag))),
    ).toEqual([]);
  });

  it('every test file runs in the pass with the lowest versions or in the thorough one, and each tag adds a pass', () => {
    const passes = evaluate(
      'passes.passesOf(files.testFiles(), { parts: passes.PARTS }).map(({ part, files, alone }) => ({ part, files: [...files, ...alone] }))',
    ) as { part: string; files: string[] }[];
    const filesOf = (name: string): string[] =>
      passes.filter(({ part }) => part === name).flatMap(({ files }) => files);
    const first = new Set([...filesOf('lowest'), ...filesOf('slow')]);
    expect(described.filter(({ file }) => !first.has(file))).toEqual([]);
    for (const [part, tag] of [
      ['highest', 'node'],
      ['highest', 'graphql'],
      ['middle', 'node-lines'],
      ['engines', 'engine'],
    ] as const) {
      const missing = filesWhere((tags) => tags.includes(tag)).filter(
        (file) => !filesOf(part).includes(file),
      );
      expect([part, missing]).toEqual([part, []]);
    }
  });
});

it('every pass says in a sentence what can differ in it', () => {
  const sentences = evaluate('passes.PASSES.map(({ proves }) => proves)') as string[];
  expect(sentences.filter((sentence) => !/^[A-Z].{20,}\.$/.test(sentence))).toEqual([]);
});

it('the pass with graphql-js replaces a module of src/ that exists', () => {
  const mapper = evaluate("passes.mapperOf({ graphql: 16, engine: 'graphql-js' })") as Record<string, string>;
  const [pattern = ''] = Object.keys(mapper).filter((key) =>
    mapper[key]?.endsWith('graphql-js-by-default.ts'),
  );
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  expect(sources.filter((name) => new RegExp(pattern).test(`/${name.replaceAll('\\', '/')}`))).toHaveLength(
    1,
  );
});
