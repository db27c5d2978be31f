/** @tags node graphql engine */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { GraphQLHandler } from '../../middleware/graphql.ts';
import { root, snippets } from '../snippets.ts';
import { type Running, run } from './server.ts';

const folder = join(root, 'artifacts', 'recipes');
const untyped = createRequire(__filename);

/** Imports a recipe of docs/operation-hook.md, found by the name of its function, and returns its handler. */
function handlerOf(name: string): GraphQLHandler {
  const recipe = snippets('ts').find(
    ({ page, code }) => page === 'docs/operation-hook.md' && code.includes(`function ${name}`),
  );
  const file = join(folder, `${name}.ts`);
  writeFileSync(file, recipe?.code ?? '');
  return untyped(file).handler;
}

describe('the recipes of docs/operation-hook.md', () => {
  const cwd = process.cwd();
  const running: Running[] = [];
  beforeAll(() => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    process.chdir(folder);
  });
  afterAll(() => process.chdir(cwd));
  afterEach(async () => {
    for (const each of running.splice(0)) await each.close();
  });

  /** Serves a recipe; returns a function that executes operations. */
  async function serve(name: string) {
    const handler = handlerOf(name);
    // Authentication middleware sets the user.
    const server = await run((req, res) => handler(Object.assign(req, { user: { id: 'ada' } }), res));
    running.push(server);
    return async (query: string, variables?: object): Promise<Record<string, unknown>> => {
      const response = await fetch(server.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query, variables }),
      });
      return (await response.json()) as Record<string, unknown>;
    };
  }

  it('graphql-query-complexity refuses operations above the limit by the values of their variables', async () => {
    const execute = await serve('limitComplexity');
    const query = 'query Items($first: Int!) { items(first: $first) { name } }';
    expect(await execute(query, { first: 10 })).toEqual({
      data: { items: null },
      extensions: { complexity: 11 },
    });
    expect(await execute(query, { first: 1000 })).toEqual({
      errors: [
        {
          message: 'The complexity 1001 of the operation exceeds 1000',
          extensions: { code: 'TOO_COMPLEX', complexity: 1001 },
        },
      ],
    });
  });

  it('the audit log of the recipe has an entry for each mutation and none for a query', async () => {
    const execute = await serve('logMutation');
    expect(await execute('{ a }')).toEqual({ data: { a: null } });
    expect(await execute('mutation { remove(id: 7) }')).toEqual({ data: { remove: null } });
    const [entry, ...others] = readFileSync(join(folder, 'audit.log'), 'utf8').trim().split('\n');
    expect(JSON.parse(entry as string)).toEqual({
      time: expect.stringMatching(/^\d{4}-/),
      user: 'ada',
      address: '127.0.0.1',
      transport: 'http',
      mutation: 'mutation {\n  remove(id: 7)\n}',
    });
    expect(others).toEqual([]);
  });

  it.each([
    ['the document', '{ items(first: 101) }', {}],
    ['a variable', 'query ($n: Int) { items(first: $n) }', { n: 101 }],
    ['the default of a variable', 'query ($n: Int = 101) { items(first: $n) }', {}],
  ])('the constraint rule refuses a value in %s', async (_, query, variables) => {
    const execute = await serve('limitFirst');
    expect(await execute(query, variables)).toMatchObject({
      errors: [
        {
          message: 'The argument "first" is 101; the maximum is 100',
          extensions: { code: 'BAD_USER_INPUT' },
        },
      ],
    });
    expect(await execute(query.replace('101', '100'), { n: 100 })).toEqual({ data: { items: null } });
  });
});
