import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';

const root = resolve(__dirname, '..');

jest.setTimeout(180_000);

/** Runs scripts/test.mjs and returns its exit code and the lines of its output. */
function runTests(args: string[], env: Record<string, string> = {}) {
  const script = join(root, 'scripts/test.mjs');
  const options = { cwd: root, encoding: 'utf8', timeout: 150_000, env: { ...process.env, ...env } } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], options);
  return { status, output: stdout.trim().split('\n'), errors: stderr.trim().split('\n') };
}

it('npm test names the missing programs and how to install them, before it runs a test', () => {
  const { status, output, errors } = runTests([], { CHROMIUM_PATH: '/absent/chromium', PATH: '/absent' });
  expect(status).toBe(1);
  expect(output).toEqual(['']);
  expect(errors[0]).toBe(
    'The tests need Chromium, which is not at /absent/chromium. Install it (Debian: apt-get install chromium) or set CHROMIUM_PATH.',
  );
  expect(errors[1]).toBe(
    'The tests need redis-server, which is not in PATH. Install it (Debian: apt-get install redis-server).',
  );
});

it.each([
  [
    '',
    'The tests need caddy, which is not in PATH. Install it (Debian: apt-get install caddy). Its tests are left out.',
  ],
  ['true', 'The tests need caddy, which is not in PATH. Install it (Debian: apt-get install caddy).'],
])('npm test with CI=%j says what it does without a proxy', (CI, message) => {
  const { errors } = runTests(['--config={'], { PATH: '/absent', CI });
  expect(errors).toContain(message);
});

it('npm test ends with a line per pass and the number of passed and failed tests', () => {
  const { status, output } = runTests(['test/workflows.test.ts']);
  expect(status).toBe(0);
  expect(output.slice(-3)).toEqual([
    expect.stringMatching(/^passed: Node \d+, graphql 16, engine compiled$/),
    '',
    '9 passed, 0 failed',
  ]);
});

it('npm test fails when a pass ends without a report', () => {
  const { status, output } = runTests(['--config={']);
  expect(status).toBe(1);
  expect(output.slice(-3)).toEqual([expect.stringMatching(/^failed: Node/), '', '0 passed, 1 failed']);
});

it.each(['absent', 'neighbours/'])('npm test fails when no test matches %j', (name) => {
  const { status, output, errors } = runTests([name]);
  expect(status).toBe(1);
  expect(output.at(-1)).toBe('0 passed, 0 failed');
  expect(errors.at(-1)).toBe(
    `No test matches ${name}; npm run test:all also runs those in test/neighbours/ and test/site/.`,
  );
});
