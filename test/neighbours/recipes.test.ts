/** @tags once */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort, isAvailable, needs, nodeOf } from '../programs.ts';
import { pack, root, scratchFolder, unpack } from '../tarball.ts';
import { until } from '../until.ts';

jest.setTimeout(180_000);

const packages = join(__dirname, 'recipes', 'node_modules');
const folder = scratchFolder();
let results: Record<string, unknown>;
let compilation: string;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const PAGES = ['recipes', 'schema-libraries', 'federation', 'pothos', 'sentry', 'dataloader', 'pagination'];

interface Recipe {
  /** The first words of its section. */
  readonly name: string;
  /** What the page installs for it, such as `graphql@16`. */
  readonly installed: readonly string[];
  readonly code: string;
}

const recipes = (): Recipe[] => PAGES.flatMap(recipesOf);

function recipesOf(page: string): Recipe[] {
  const text = readFileSync(join(root, 'docs', `${page}.md`), 'utf8');
  return [...text.matchAll(/^## ([\w ]+): .*\n([\s\S]*?)^```ts recipe\n([\s\S]*?)^```/gm)].map(
    ([, name = '', before = '', code = '']) => {
      const own = [...before.matchAll(/^npm install (.*)$/gm)].map(([, words = '']) => words).join(' ');
      // A page that adds to its first line.
      const [, first = ''] = own.includes('espalier') ? [] : (/^npm install (.*)$/m.exec(text) ?? []);
      const words = `${first} ${own}`.split(' ').filter(Boolean);
      const installed = [...new Set(words)];
      return { name: name.toLowerCase().replaceAll(' ', '-'), installed, code };
    },
  );
}

/** Links packages of test/neighbours/recipes into a folder, so that there is one copy of graphql. */
function link(names: readonly string[], target: string): void {
  for (const name of names) {
    mkdirSync(join(target, 'node_modules', dirname(name)), { recursive: true });
    symlinkSync(join(packages, name), join(target, 'node_modules', name));
  }
}

const nameOf = (specifier: string): string => specifier.replace(/(?<=.)@.*/, '');
const versionIn = (name: string): string =>
  JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8')).version;

/** Writes each recipe as JavaScript, and returns what the compiler says. */
function compile(): string {
  for (const name of ['@types/node', 'undici-types']) {
    mkdirSync(join(folder, 'node_modules', '@types'), { recursive: true });
    rmSync(join(folder, 'node_modules', name), { force: true });
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  }
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2023',
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    // TypeGraphQL reads the types of parameters.
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    noEmitOnError: false,
    types: ['node'],
    // Its package.json names no types under "exports".
    paths: { 'graphql-modules': ['./node_modules/graphql-modules/index.d.ts'] },
  };
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  // The plugin of the recipe "scopes" declares an option that every builder of the program then needs.
  const programs = [{ include: ['*.mts'], exclude: ['scopes.mts'] }, { files: ['scopes.mts'] }];
  return programs
    .map((program) => {
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, ...program }));
      return spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' }).stdout;
    })
    .join('');
}

/** Starts a NATS server, and returns what the recipe needs to know. */
async function startNats(): Promise<{ NATS_URL?: string; stop(): void }> {
  if (!isAvailable('nats-server')) return { stop() {} };
  const port = await freePort();
  const words = ['-js', '-a', '127.0.0.1', '-p', `${port}`, '-sd', join(folder, 'nats')];
  const child = spawn('nats-server', words, { stdio: ['ignore', 'ignore', 'pipe'] });
  for (let log = ''; !log.includes('Server is ready'); ) log += (await once(child.stderr, 'data')).join('');
  return { NATS_URL: `127.0.0.1:${port}`, stop: () => void child.kill() };
}

/** Starts the broker of librdkafka that stands for Kafka, and returns what the recipe needs to know. */
async function startKafka(): Promise<{ KAFKA_BROKER?: string; stop(): void }> {
  if (!isAvailable('kcat')) return { stop() {} };
  const file = join(folder, 'kafka.log');
  const log = openSync(file, 'w');
  const words = ['-P', '-b', 'none', '-t', 'none', '-X', 'test.mock.num.brokers=1', '-d', 'mock'];
  const child = spawn('kcat', words, { stdio: ['pipe', 'ignore', log] });
  closeSync(log);
  const address = /bootstrap\.servers=(\S+)/;
  await until(() => address.test(readFileSync(file, 'utf8')));
  const [, KAFKA_BROKER = ''] = address.exec(readFileSync(file, 'utf8')) ?? [];
  return { KAFKA_BROKER, stop: () => void child.kill('SIGKILL') };
}

beforeAll(async () => {
  // All packages are found in one folder, so that there is one copy of graphql.
  unpack(pack(), folder);
  const names = readdirSync(packages).filter((entry) => !entry.startsWith('.'));
  const withScopes = names.flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(packages, name)).map((each) => `${name}/${each}`) : [name],
  );
  link(withScopes, folder);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  for (const { name, code } of recipes()) writeFileSync(join(folder, `${name}.mts`), code);
  cpSync(join(__dirname, 'recipes', 'exercise.mjs'), join(folder, 'exercise.mjs'));
  compilation = compile();
  // Grafast needs Node 22.
  const node = nodeOf(22);
  const { stop: stopNats, ...nats } = await startNats();
  const { stop: stopKafka, ...kafka } = await startKafka();
  const env = {
    ...process.env,
    ...nats,
    ...kafka,
    NODE_ENV: 'production',
    GRAPHILE_ENV: 'production',
    NO_COLOR: '1',
  };
  const { stdout, stderr } = spawnSync(node, ['exercise.mjs'], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  stopNats();
  stopKafka();
  const line = stdout.trim().split('\n').at(-1) ?? '';
  if (!line.startsWith('{')) throw new Error(stdout + stderr);
  results = JSON.parse(line);
});

it('the recipes compile', () => {
  expect(compilation).toBe('');
});

it('docs/recipes.md has a recipe for each package of its table', () => {
  expect(recipesOf('recipes').map(({ name }) => name)).toEqual([
    'query-complexity',
    'limits',
    'permissions',
    'plugins',
    'plans',
    'databases',
    'events',
    'kafka',
  ]);
});

/** Recipes that connect to a server when they are imported. */
const CONNECTING = ['databases', 'events', 'kafka'];

it.each(recipes().map((recipe) => [recipe.name, recipe] as const))(
  'the recipe %s needs only the packages that its page installs, also on Node 24',
  (name, { installed }) => {
    const alone = scratchFolder();
    link(
      installed.map(nameOf).filter((each) => each !== 'espalier'),
      alone,
    );
    symlinkSync(join(folder, 'node_modules', 'espalier'), join(alone, 'node_modules', 'espalier'));
    const code = readFileSync(join(folder, `${name}.mjs`), 'utf8');
    const imports = code.match(/^import [^;]*;$/gm) ?? [];
    writeFileSync(
      join(alone, 'index.mjs'),
      `${CONNECTING.includes(name) ? imports.join('\n') : code}\nprocess.exit();\n`,
    );
    const env = { ...process.env, NODE_ENV: 'production' };
    const { status, stderr } = spawnSync(nodeOf(24), ['index.mjs'], { cwd: alone, env, encoding: 'utf8' });
    rmSync(alone, { recursive: true, force: true });
    expect([status, stderr]).toEqual([0, expect.not.stringMatching(/Error/)]);
  },
);

it.each(recipes().map((recipe) => [recipe.name, recipe] as const))(
  'npm installs what the page names for the recipe %s: releases, which accept its graphql',
  (_name, { installed }) => {
    // Without a version npm takes the newest one.
    const major = installed.includes('graphql@16') ? 16 : 17;
    for (const specifier of installed.filter((each) => !['espalier', 'graphql'].includes(nameOf(each)))) {
      const name = nameOf(specifier);
      const version = versionIn(name);
      // A prerelease is none of the versions that npm chooses by itself. A page may need an older release.
      const pinned = `${name}@${version.replace(/\.\d+$/, '')}`;
      expect(version.includes('-') ? [`${name}@${version}`] : [name, pinned]).toContain(specifier);
      const { peerDependencies = {} } = JSON.parse(
        readFileSync(join(packages, name, 'package.json'), 'utf8'),
      ) as { peerDependencies?: Record<string, string> };
      const range = peerDependencies['graphql'] ?? `${major}`;
      expect([name, range]).toEqual([name, expect.stringMatching(new RegExp(`(?<![.\\d])${major}\\b`))]);
    }
  },
);

it('graphql-query-complexity limits operations by the values of their variables', () => {
  expect(results['query-complexity']).toEqual([
    { data: { items: null }, extensions: { complexity: 11 } },
    { errors: [['The operation is too complex', 'TOO_COMPLEX']] },
  ]);
});

it('the rules of GraphQL Armor limit depth and aliases', () => {
  expect(results['limits']).toEqual([
    { data: { user: null } },
    { errors: [['Syntax Error: Query depth limit of 3 exceeded, found 5.', 'BAD_USER_INPUT']] },
    { errors: [['Syntax Error: Aliases limit of 2 exceeded, found 3.', 'BAD_USER_INPUT']] },
  ]);
});

it('GraphQL Shield guards fields, its refusals reach the client, and other errors are masked', () => {
  expect(results['permissions']).toEqual([
    { data: { open: 'for everyone', secret: null }, errors: [['Forbidden', 'FORBIDDEN']] },
    { data: { open: 'for everyone', secret: 'for users' } },
    { data: { broken: null }, errors: [['Internal server error', 'INTERNAL_SERVER_ERROR']] },
  ]);
});

it('plugins of Envelop build the context and change results', () => {
  expect(results['plugins']).toEqual([
    { data: { user: 'ada', hello: 'world' }, extensions: { plugin: true } },
    { errors: [[expect.stringContaining('introspection has been disabled'), null]] },
  ]);
});

it('Grafast executes plans with variables and context, over HTTP and over sockets', () => {
  expect(results['plans']).toEqual([{ data: { add: 42, me: 'ada' } }]);
  expect(results['socket']).toEqual({ data: { add: 3 } });
});

it('PostGraphile reads and writes a database, with the settings of the request', () => {
  expect(results['databases']).toEqual([
    { data: { allNotes: { nodes: [{ text: 'first' }], totalCount: 2 } } },
    { data: { createNote: { note: { text: 'third', owner: 'ada' } } } },
  ]);
});

it('schemas of TypeGraphQL, Nexus, GraphQL Modules and Apollo Federation are served', () => {
  expect(results['typegraphql']).toEqual([
    { data: { hello: 'Hello Ada', me: 'Ada' } },
    { data: null, errors: [[expect.any(String), 'UNAUTHENTICATED']] },
  ]);
  expect(results['countdown']).toEqual([2, 1]);
  expect(results['nexus']).toEqual([{ data: { hello: 'Hello world' } }]);
  expect(results['graphql-modules']).toEqual([{ data: { user: 'Ada' } }]);
  expect(results['subgraph']).toEqual([
    { data: { _entities: [{ name: 'Ada' }, null] } },
    { data: { _service: { sdl: expect.stringContaining('type User') } } },
  ]);
});

it('directives of Pothos require scopes and limit the cost, and the errors of scope-auth reach the client', () => {
  expect(results['pothos']).toEqual([
    { data: { me: 'Ada', reports: ['Report 1', 'Report 2'] } },
    { errors: [[expect.any(String), 'UNAUTHENTICATED']] },
    { errors: [[expect.any(String), 'FORBIDDEN']] },
    { errors: [[expect.any(String), 'COST_LIMIT']] },
  ]);
  expect(results['scopes']).toEqual([
    { data: { me: 'Ada' } },
    { data: { me: null }, errors: [['Sign in first', 'UNAUTHENTICATED']] },
  ]);
});

it('a subgraph of Pothos has entities, scopes, costs and limits, and defines its own directives', () => {
  expect(results['pothos-behind-a-gateway']).toEqual([
    {
      data: { _entities: [{ name: 'Ada', email: null }, null] },
      errors: [[expect.any(String), 'FORBIDDEN']],
    },
    { data: { reviews: [{ author: { email: 'ada@example.com' } }] } },
    { errors: [[expect.any(String), 'COST_LIMIT']] },
    { data: { a: true, b: true, c: null }, errors: [[expect.any(String), 'RATE_LIMITED']] },
    {
      data: {
        _service: {
          // @apollo/gateway refuses a subgraph that imports the directives of authorization.
          sdl: expect.stringMatching(/import: \["@key", "@listSize"\][\s\S]*directive @authenticated/),
        },
      },
    },
  ]);
});

it('a connection of docs/pagination.md continues after a cursor, and refuses others', () => {
  expect(results['pages']).toEqual([['Article 1', 'Article 2'], ['Article 3', 'Article 4'], ['Article 5']]);
  expect(results['connections']).toEqual([
    { errors: [[expect.any(String), 'BAD_USER_INPUT']], data: null },
    { errors: [[expect.any(String), 'BAD_USER_INPUT']], data: null },
    { errors: [[expect.any(String), 'COST_LIMIT']] },
    { data: { node: { title: 'Article 3' } } },
  ]);
});

it('Sentry gets the unexpected errors of resolvers, which clients do not see', () => {
  expect(results['sentry']).toEqual({
    events: [['db.internal is down', { transport: 'http', operation: 'Break' }]],
    errors: ['Internal server error'],
  });
});

it('a list and its authors are two queries of Drizzle', () => {
  const author = (name: string) => ({ author: { name } });
  expect(results['drizzle']).toEqual({
    data: {
      articles: [
        { title: 'One', ...author('Ada') },
        { title: 'Two', ...author('Bob') },
        { title: 'Three', ...author('Ada') },
      ],
    },
    queries: 2,
  });
});

needs('nats-server').it(
  'subscriptions continue in a stream of NATS after their cursor, and notice a gap',
  () => {
    expect(results['events']).toEqual({
      orders: ['one', 'two', 'three'],
      errors: [{ code: 'EVENTS_MISSED', refetch: true }],
    });
  },
);

needs('kcat').it(
  'subscriptions continue in a partition of Kafka in another process, and notice a gap',
  () => {
    expect(results['kafka']).toEqual({
      orders: ['one', 'two', 'three'],
      errors: [{ code: 'EVENTS_MISSED', refetch: true }],
    });
  },
);
