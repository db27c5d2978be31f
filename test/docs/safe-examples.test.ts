/** @tags once */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pages, root } from '../snippets.ts';

// Examples are copied. What is harmless in them, because they have no users, must not become a leak in the copy.

interface Example {
  readonly name: string;
  readonly code: string;
}

const read = (name: string): string => readFileSync(join(root, name), 'utf8');
const listed = execFileSync('git', ['ls-files', 'examples', 'types', 'middleware'], {
  cwd: root,
  encoding: 'utf8',
});

/** The code of the pages, of the examples and of docstrings. */
const examples: readonly Example[] = [
  ...pages.flatMap((page) =>
    // What the reader has before a migration is not ours.
    [...read(page).matchAll(/^```(?:ts|js)(?! before)[^\n]*\n([\s\S]*?)^```/gm)].map(
      ([, code = ''], index) => ({
        name: `${page} (block ${index + 1})`,
        code,
      }),
    ),
  ),
  ...listed
    .split('\n')
    .filter((name) => /\.(?:ts|js|mjs)$/.test(name))
    .map((name) => ({ name, code: read(name) })),
];

const LITERAL = /(?:'[^'\n]*'|"[^"\n]*"|`[^`$]*`|\d[\w.]*|true)/.source;
/** Options whose functions tell callers apart. */
const KEYS = '(?:share|key|user|scopes|policies|tenant)';

/** Patterns of code that is unsafe to copy. */
const UNSAFE: Readonly<Record<string, RegExp>> = {
  'a function that gives all callers one key': new RegExp(
    `\\b${KEYS}\\s*(?::\\s*(?:async\\s*)?(?:\\([^()]*\\)|\\w+)\\s*=>\\s*(?:\\{\\s*return\\s*)?|\\([^()]*\\)\\s*\\{\\s*return\\s*)${LITERAL}\\s*[,;})\\n]`,
  ),
  'an identity that the client chooses in a header or cookie': new RegExp(
    `\\b(?:${KEYS}|roles?|isStaff)\\s*:[^,;]*headers(?:\\['x-|\\.cookie\\??\\.includes)`,
  ),
  'a decision about access by the text of a cookie': /headers\.cookie\?*\.includes\(/,
  'a secret in the code': /\b(?:secret|password|privateKey|apiKey)\s*:\s*['"`]/,
  'a key of cursors in the code': /\bcursors\s*:\s*\{\s*key\s*:\s*['"`]/,
  'all origins with credentials':
    /origin\s*:\s*(?:true|'\*')[^}]*credentials\s*:\s*true|allowedOrigins\s*:\s*'\*'/,
  'a step of a shutdown whose rejection ends the process':
    /'SIG\w+'[\s\S]*?\bawait (?!server\.drain|sockets\.close|subscriptions\.close|once\b|closed\b)[\w.$]+\.(?:close|flush|quit|end|\$disconnect)\((?:[^()]*)\)(?!\s*\.catch)/,
};

describe('the examples of the documentation and of the repository', () => {
  it.each(Object.entries(UNSAFE))('no example contains %s', (_what, pattern) => {
    expect(examples.length).toBeGreaterThan(200);
    const found = examples.flatMap(({ name, code }) => {
      const match = pattern.exec(code);
      return match === null ? [] : [`${name}: ${match[0].slice(-100)}`];
    });
    expect(found).toEqual([]);
  });

  it.each([
    ["attachSubscriptions(server, handler, { share: () => 'everybody' });", 0],
    ['  share: (_context) => {\n    return 1;\n  },', 0],
    ["budget: { limit: 5, key: () => 'all' }", 0],
    ["context: ({ headers }) => ({ tenant: headers['x-tenant'] }),", 1],
    ["graphiql: (req) => req.headers.cookie?.includes('staff=1') === true,", 2],
    ["session({ secret: 'change me' })", 3],
    ["cursors: { key: 'not a secret any more' }", 4],
    ['cors({ origin: true, credentials: true })', 5],
    ["process.once('SIGTERM', async () => {\n  await server.drain();\n  await events.close();\n});", 6],
  ])('the check finds what is unsafe in %j', (code, index) => {
    expect(Object.values(UNSAFE)[index]?.test(code)).toBe(true);
  });

  it.each([
    'share: (context: { tenant?: string }) => context.tenant,',
    "process.once('SIGTERM', async () => {\n  await server.drain();\n  await events.close().catch(console.error);\n});",
  ])('the check accepts %j', (code) => {
    expect(Object.values(UNSAFE).filter((pattern) => pattern.test(code))).toEqual([]);
  });
});
