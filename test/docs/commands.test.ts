/** @tags once slow */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../programs.ts';
import { pages, root } from '../snippets.ts';

// The commands of the documentation run as they are written, and nothing in it is left without a test.

jest.setTimeout(120_000);

const read = (name: string): string => readFileSync(join(root, name), 'utf8');
const guides = [
  ...pages,
  'CONTRIBUTING.md',
  'SECURITY.md',
  'examples/README.md',
  'examples/file-share/README.md',
  'examples/photo-wall/README.md',
  'examples/trusted-documents/README.md',
];

/** The test that runs the code blocks of each language. */
const RUN_BY: Record<string, string> = {
  ts: 'test/docs/snippets.test.ts',
  'ts before': 'test/neighbours/migrating.test.ts',
  'ts after': 'test/neighbours/migrating.test.ts',
  'ts recipe': 'test/neighbours/recipes.test.ts',
  js: 'test/docs/snippets-in-chromium.test.ts',
  'js server.mjs': 'test/package/first-example.test.ts',
  'js relay': 'test/neighbours/incremental-clients.test.ts',
  nginx: 'test/docs/deployment.test.ts',
  caddyfile: 'test/docs/deployment.test.ts',
  haproxy: 'test/docs/deployment.test.ts',
  graphql: 'test/examples/file-share.test.ts',
  sh: 'test/docs/commands.test.ts',
  text: 'test/graphiql/page.test.ts',
  html: 'test/static/pages.test.ts',
  yaml: 'test/site/snippets.test.ts',
  dockerfile: 'test/site/snippets.test.ts',
  'ts site': 'test/site/snippets.test.ts',
  json: 'test/usage/usage.test.ts',
  'ts signature': 'test/docs/pages.test.ts',
  'ts example': 'test/docs/snippets.test.ts',
  'ts neighbours': 'test/neighbours/guides.test.ts',
  'ts nestjs': 'test/neighbours/nestjs.test.ts',
  'ts ssr': 'test/neighbours/ssr.test.ts',
  'sh docker': 'test/site/tutorial.test.ts',
  lua: 'test/pubsub/elsewhere.test.ts',
  python: 'test/pubsub/elsewhere.test.ts',
};

/** The code blocks of docs/tutorial.md, which test/site/tutorial.test.ts runs in their order. */
const TUTORIAL = /^\w+ tutorial\b/;

/** Lines of shell blocks that another test runs: npm install with the packed tarball, curl with a real server. */
const RUN_ELSEWHERE: Record<string, string> = {
  'npm install espalier express graphql': 'test/package/first-example.test.ts',
  'npm install': 'test/project/install.test.ts',
  'npm install && npm start': 'test/project/install.test.ts',
  'npm install && npm test': 'test/project/scripts.test.ts',
  'PORT=3000 REDIS_URL=redis://127.0.0.1 npm start': 'test/examples/photo-wall.test.ts',
  'PORT=3001 REDIS_URL=redis://127.0.0.1 npx tsx examples/photo-wall/server.ts':
    'test/examples/photo-wall.test.ts',
  'curl http://localhost:3000/graphql \\': 'test/docs/snippets-in-chromium.test.ts',
  "curl http://localhost:3000/graphql -H 'content-type: application/json' \\":
    'test/graphql/variable-batching.test.ts',
  "curl -H 'Accept: text/markdown' http://localhost:3000/guide   # guide.md": 'test/static/variants.test.ts',
  'curl http://localhost:3000/guide                              # guide.html':
    'test/static/variants.test.ts',
  "curl -H 'Accept: image/avif' http://localhost:3000/photo.jpg  # photo.avif":
    'test/static/variants.test.ts',
  'npx espalier compress dist': 'test/cli/compress.test.ts',
  'npx espalier check --schema schema.graphql --documents persisted-documents.json':
    'test/cli/check-documents.test.ts',
  'git show main:schema.graphql > old.graphql': 'test/cli/check-schema.test.ts',
  'npx espalier check --schema schema.graphql --against old.graphql \\': 'test/cli/check-schema.test.ts',
  'npx tsx examples/trusted-documents/build.ts': 'test/examples/trusted-documents.test.ts',
  'npx espalier check --schema examples/trusted-documents/schema.graphql --documents examples/trusted-documents/persisted-documents.json':
    'test/examples/trusted-documents.test.ts',
  'npx tsx examples/trusted-documents/server.ts': 'test/examples/trusted-documents.test.ts',
  'redis-cli PUBLISH espalier:said \'{"said":"hi"}\'': 'test/pubsub/elsewhere.test.ts',
  'redis-cli --eval publish.lua \\': 'test/pubsub/elsewhere.test.ts',
  'npm install pino pino-http': 'test/neighbours/guides.test.ts',
  "token=$(curl -s localhost:3000/login -H 'Content-Type: application/json' \\":
    'test/neighbours/login.test.ts',
  'curl localhost:3000/graphql -H "Authorization: Bearer $token" \\': 'test/neighbours/login.test.ts',
  'npm install && npm test && npm start': 'test/neighbours/nestjs.test.ts',
  'npm install espalier graphql @nestjs/graphql': 'test/neighbours/nestjs.test.ts',
  'npm uninstall @nestjs/apollo @apollo/server @as-integrations/express5': 'test/neighbours/nestjs.test.ts',
  'npm install @apollo/subgraph graphql@16': 'test/neighbours/nestjs.test.ts',
  'npm install parse5-html-rewriting-stream': 'test/static/pages.test.ts',
  'npm install @opentelemetry/api': 'test/neighbours/telemetry.test.ts',
  "curl -gN -H 'Accept: text/event-stream' 'http://localhost:3000/graphql?query=subscription{tick}'":
    'test/live/stream-clients.test.ts',
};

/** Pages whose installations test/neighbours/recipes.test.ts compares with what their code needs. */
const WITH_RECIPES = [
  'recipes',
  'schema-libraries',
  'federation',
  'pothos',
  'sentry',
  'dataloader',
  'pagination',
].map((name) => `docs/${name}.md`);

/** The lines of the shell blocks, without continuation lines. */
const commands = guides.flatMap((page) =>
  [...read(page).matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(([, code]) =>
    (code as string)
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith(' '))
      .map((line) => [page, line] as const),
  ),
);

/** The files that npm start needs. */
const IN_COPY = new Set([
  'dist',
  'examples',
  'client',
  'middleware',
  'package.json',
  'package-lock.json',
  'scripts',
  'src',
  'tsconfig.json',
  'types',
]);

describe('the code blocks of the documentation', () => {
  it.each(guides)('every code block of %s has a language that a test runs', (page) => {
    const fences = [...read(page).matchAll(/^ *```(.*)$/gm)].map(([, info]) => info as string);
    const languages = fences.filter((_, index) => index % 2 === 0);
    const known = (language: string) => Object.hasOwn(RUN_BY, language) || TUTORIAL.test(language);
    expect(languages.filter((language) => !known(language))).toEqual([]);
  });

  it('every curl command with braces in its URL turns globbing off', () => {
    const urls = guides.flatMap((page) => read(page).match(/^(?:\/\/ )?curl .*$/gm) ?? []);
    const examples = readdirSync(join(root, 'examples'))
      .filter((name) => name.endsWith('.ts'))
      .flatMap((name) => read(`examples/${name}`).match(/^\/\/ curl .*$/gm) ?? []);
    const globbed = [...urls, ...examples].filter((line) => /localhost[^ ]*[[{]/.test(line));
    expect(globbed.length).toBeGreaterThan(1);
    expect(globbed.filter((line) => !/curl (?:-\S+ )*-\w*g/.test(line))).toEqual([]);
  });

  it('the tests that run the code blocks exist', () => {
    for (const test of [...Object.values(RUN_BY), ...Object.values(RUN_ELSEWHERE)]) {
      expect([test, existsSync(join(root, test))]).toEqual([test, true]);
    }
  });

  it('every npm script, file and example that a command names exists', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const text = guides.map(read).join('\n');
    const npm = [...text.matchAll(/`npm (?:run )?(start|test[\w:]*|check|build)\b/g)].map(([, name]) => name);
    expect(npm.length).toBeGreaterThan(5);
    expect(npm.filter((name) => !Object.hasOwn(scripts, name as string))).toEqual([]);
    const files = [...text.matchAll(/`(?:node|npx tsx|bash) ([\w./-]+\.\w+|\.ci\/run)/g)].map(
      ([, file]) => file,
    );
    expect(files.length).toBeGreaterThan(10);
    const absent = files.filter((file) => !existsSync(join(root, file as string)));
    expect([...new Set(absent)]).toEqual(['server.mjs']); // the examples of README.md
  });

  it('examples/README.md has the command of every example', () => {
    const text = read('examples/README.md');
    for (const file of readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.ts'))) {
      expect(text).toContain(`npx tsx examples/${file}\``);
    }
  });
});

describe('the commands of the documentation', () => {
  // npm start builds, so it runs in a copy: other tests use dist/ meanwhile.
  const copy = mkdtempSync(join(tmpdir(), 'espalier-commands-'));
  const groups = new Set<ChildProcess>();
  beforeAll(() => {
    for (const name of readdirSync(root)) {
      if (IN_COPY.has(name))
        cpSync(join(root, name), join(copy, name), { recursive: true, preserveTimestamps: true });
    }
    symlinkSync(realpathSync(join(root, 'node_modules')), join(copy, 'node_modules'));
  });
  afterAll(() => {
    for (const { pid } of groups) process.kill(-(pid as number), 'SIGKILL');
    rmSync(copy, { recursive: true, force: true });
  });

  /** Runs a command in its own process group, as a terminal does. */
  function runInShell(command: string, env: Record<string, string>): ChildProcess {
    const child = spawn('sh', ['-c', command], {
      cwd: copy,
      detached: true,
      env: { ...process.env, DATA_DIR: join(copy, 'data'), NODE_ENV: '', ...env },
    });
    groups.add(child);
    child.once('exit', () => groups.delete(child));
    return child;
  }

  const servers = commands.filter(
    ([page, line]) =>
      !Object.hasOwn(RUN_ELSEWHERE, line) &&
      !(WITH_RECIPES.includes(page) && line.startsWith('npm install ')),
  );

  it.each(servers)('the command in %s serves a page and ends with Ctrl+C: %s', async (_page, line) => {
    const port = String(await freePort());
    const command = line.replace(/^PORT=\d+/, `PORT=${port}`);
    const child = runInShell(command, { PORT: port });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (output += chunk));
    const exit = once(child, 'close');
    while (!output.includes(`http://localhost:${port}`)) {
      if (child.exitCode !== null) throw new Error(`${command} ended: ${output}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const response = await fetch(`http://localhost:${port}/`);
    expect([response.status, await response.text()]).toEqual([
      200,
      expect.stringContaining('<!doctype html>'),
    ]);
    process.kill(-(child.pid as number), 'SIGINT');
    await exit;
  });
});
