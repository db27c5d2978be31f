// Plants faults, one at a time, and checks that exactly those passes fail in which it can be seen: the sentences of
// passes.mjs are true as long as it finds them all. node scripts/test/planted-faults.mjs [a part of a name]
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './files.mjs';
import { PASSES } from './passes.mjs';

const [LOWEST, SLOW, HIGHEST] = ['lowest', 'slow', 'highest'].map((name) => passesOf(name));
const [NODE_22, NODE_24] = passesOf('middle');
const ENGINES = passesOf('engines');

function passesOf(name) {
  const names = PASSES.filter(({ part }) => part === name).map((pass) => pass.name);
  return names.length === 1 ? names[0] : names;
}

/** Fails in one line of Node, as an API does that only this line has in another form. */
const failsOn = (line) => `if (process.version.startsWith('v${line}.')) throw new Error('planted');\n`;
/** Reads a function that later versions of Node have removed. */
const calls = (module, name) => `process.getBuiltinModule('${module}').${name}.call;\n`;

/** Each replaces a text of a source, or stands before the first import; `test` is a part of the path of one test file. */
const FAULTS = [
  {
    name: 'a page shows what it should escape',
    source: 'src/graphiql/page.ts',
    replace: ['export function escapeHtml(text: string): string {', '$&\n  if (text !== "") return text;'],
    test: 'graphiql/escape',
    passes: [LOWEST],
  },
  {
    name: 'a function that Node 26 has removed (SlowBuffer)',
    source: 'src/http/body.ts',
    before: calls('node:buffer', 'SlowBuffer'),
    test: 'graphql/bodies',
    passes: [HIGHEST],
  },
  {
    name: 'a function that Node 26 has removed (CallTracker)',
    source: 'src/static/path.ts',
    before: calls('node:assert', 'CallTracker'),
    test: 'static/path-attacks',
    passes: [HIGHEST],
  },
  {
    name: 'a function that Node 24 has removed (createSecurePair)',
    source: 'src/uploads/form.ts',
    before: calls('node:tls', 'createSecurePair'),
    test: 'uploads/value',
    passes: [NODE_24, HIGHEST],
  },
  {
    name: 'a function that Node 24 has removed (util.log)',
    source: 'src/server/create-server.ts',
    before: calls('node:util', 'log'),
    test: 'server/server.test',
    passes: [NODE_24, HIGHEST],
  },
  {
    name: 'an API of Node 22 in the handshake',
    source: 'src/live/upgrade.ts',
    before: failsOn(22),
    test: 'live/upgrade.test',
    passes: [NODE_22],
  },
  {
    name: 'an API of Node 22 in a compressor',
    source: 'src/static/compress.ts',
    before: failsOn(22),
    test: 'static/compress.test',
    passes: [NODE_22],
  },
  {
    name: 'an API of Node 24 in a stream',
    source: 'src/http/stream.ts',
    before: failsOn(24),
    test: 'http/stream',
    passes: [NODE_24],
  },
  {
    name: 'a message of graphql 16',
    source: 'src/engine/completion-errors.ts',
    replace: ["V17 ? ', which is not a valid Object type name' : ''", "''"],
    test: 'engine/cases',
    passes: [HIGHEST],
  },
  {
    name: 'the query string that Express 4 does not parse in an upgrade',
    source: 'src/live/upgrade.ts',
    replace: ["if (!('query' in req))", 'if (false)'],
    test: 'live/upgrade.test',
    passes: [LOWEST, HIGHEST, NODE_22, NODE_24],
  },
  {
    name: 'zstd, which Node 20 does not have',
    source: 'src/http/codings.ts',
    replace: ['zstd: zstd &&', 'zstd: undefined &&'],
    test: 'static/compress.test',
    passes: [HIGHEST, NODE_22, NODE_24],
  },
  {
    name: 'the method of graphql 16 that converts results',
    source: 'src/engine/completion-errors.ts',
    replace: ["V17 ? 'coerceOutputValue' : 'serialize'", "'coerceOutputValue'"],
    test: 'engine/cases',
    passes: [LOWEST],
  },
  {
    name: 'how graphql 17 returns the values of variables',
    source: 'src/engine/input.ts',
    replace: ['V17 ? read17 : read16', 'read16'],
    test: 'engine/cases',
    passes: [HIGHEST],
  },
  {
    name: 'an execution that graphql 17 aborts',
    source: 'src/engine/execute.ts',
    replace: ['if (V17) rejectOnAbort(ex);', ''],
    test: 'engine/interruptions',
    passes: [HIGHEST],
  },
  {
    name: 'the first error of a partial result of graphql-js',
    source: 'src/execution/graphql-js.ts',
    replace: ['settings.maxErrors) : result.errors;', 'settings.maxErrors) : result.errors.slice(1);'],
    test: 'core/errors',
    // The tests that choose graphql-js themselves find it in the other passes.
    passes: [LOWEST, HIGHEST, ...ENGINES],
  },
  {
    name: 'a third execution with graphql-js',
    source: 'src/execution/graphql-js.ts',
    replace: [
      '  return (inputs) => {\n',
      "  let runs = 0;\n$&    if (++runs > 2) throw new Error('planted');\n",
    ],
    test: 'graphql/on-operation',
    passes: [LOWEST, HIGHEST, ...ENGINES],
  },
  {
    name: 'each handler stays in memory',
    source: 'src/graphql/handler.ts',
    before: 'const kept: object[] = [];\n',
    replace: [/export function createHandler\(.*\{\n/, '$&  kept.push(core);\n'],
    test: 'graphql/handler-memory',
    passes: [SLOW],
  },
  {
    name: 'requests from other sites',
    source: 'src/graphql/csrf.ts',
    replace: ['return new HttpError(403', 'return void 0 as never; new HttpError(403'],
    test: 'graphql/csrf-in-chromium',
    passes: [SLOW],
  },
  {
    name: 'a code of an error that no page explains',
    source: 'src/static/root.ts',
    before: "// 'PLANTED_FAULT'\n",
    test: 'docs/error-codes',
    passes: [LOWEST],
  },
  {
    name: 'an event that a filter leaves out',
    source: 'src/pubsub/derived.ts',
    replace: ['if (result.done || (await test(result.value))) return result;', 'return result;'],
    test: 'pubsub/streams',
    passes: [LOWEST, HIGHEST],
  },
];

const wanted = process.argv.slice(2).join(' ');
const results = FAULTS.filter(({ name }) => name.includes(wanted)).map(plant);
console.log(`${results.filter(Boolean).length} of ${results.length} planted faults are found where they are`);
if (results.includes(false)) process.exitCode = 1;

/** Whether exactly the passes of a fault fail. */
function plant({ name, source, replace: [from, to] = [/^/, ''], before = '', test, passes }) {
  const path = join(root, source);
  const text = readFileSync(path, 'utf8');
  const changed = before + text.replace(from, to);
  if (changed === text) throw new Error(`${source} has no ${from}`);
  let output;
  try {
    writeFileSync(path, changed);
    const script = join(root, 'scripts/test.mjs');
    const args = [script, '--all', `test/${test}`];
    output = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' }).stdout;
  } finally {
    writeFileSync(path, text);
  }
  const failed = [...output.matchAll(/^failed: (Node .*)$/gm)].map(([, pass]) => pass);
  const isFound = failed.length === passes.length && passes.every((pass) => failed.includes(pass));
  console.log(`${isFound ? 'found' : 'NOT FOUND'}: ${name} (${failed.join('; ') || 'no pass failed'})`);
  return isFound;
}
