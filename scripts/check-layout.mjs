// Checks the layout of the sources: the direction of imports, cycles, the sizes of functions, and escapes from the types.
// Usage: node scripts/check-layout.mjs [root]. Prints one line per violation and exits with 1 if there are violations.
import { dirname, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findCycles } from './layout/cycles.mjs';
import { readSources } from './layout/parse.mjs';

// The folders, lowest layer first. A value is imported from a lower layer or from the own folder; a type may come from anywhere.
const LAYERS = [
  ['types'],
  ['src/diagnostics', 'src/options'],
  ['src/http'],
  ['src/redis', 'src/testing'],
  ['src/execution', 'src/pubsub', 'src/server', 'src/static'],
  ['src/engine', 'src/pages', 'src/postgres', 'src/presence', 'src/signed'],
  ['src/core'],
  ['src/rate-limit'],
  ['src/auth', 'src/cost', 'src/usage'],
  ['src/cache', 'src/cli', 'src/idempotency', 'src/uploads'],
  ['src/live'],
  ['src/compress', 'src/graphiql', 'src/inspect', 'src/otel'],
  ['src/graphql', 'src/mcp'],
  ['middleware'],
];
const RANKS = new Map(LAYERS.flatMap((folders, rank) => folders.map((folder) => [folder, rank])));
// The browser's part of GraphiQL is not part of the package's modules: only its imports are checked.
const APP = 'src/graphiql/app/';
// The one file that may write to the console.
const LOGGING = 'src/diagnostics/logging.ts';

const MAX_OWN_LINES = 45;
const MAX_FUNCTION_LINES = 80;
const ESCAPES = /\bas never\b|\bas unknown as\b|@ts-|biome-ignore|TODO|FIXME|\bconsole\./g;

const modules = readSources(process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)));
const measured = [...modules].filter(([file]) => !file.startsWith(APP));
const violations = [...checkDirection(), ...checkCycles(), ...checkFunctionSizes(), ...checkEscapes()];
for (const { rule, place, message } of violations) console.log(`${rule}: ${place}: ${message}`);
if (violations.length > 0) process.exitCode = 1;
else console.log(`Layout: ${modules.size} modules, no violation`);

/** The folder of a path that has a layer. */
function areaOf(path) {
  const [top, second] = path.split('/');
  return top === 'src' ? `${top}/${second}` : top;
}

function checkDirection() {
  return [...modules].flatMap(([file, { imports }]) => {
    const messages = RANKS.has(areaOf(file))
      ? imports.map((entry) => directionOf(file, entry))
      : [noLayer(file)];
    return messages
      .filter((message) => message !== undefined)
      .map((message) => ({ rule: 'direction', place: file, message }));
  });
}

function noLayer(path) {
  return `${areaOf(path)} has no layer: use another folder, or add it to LAYERS in scripts/check-layout.mjs`;
}

function directionOf(file, { specifier, typeOnly }) {
  const own = areaOf(file);
  if (!specifier.startsWith('.')) {
    if (/^express(\/|$)/.test(specifier)) return `imports ${specifier}: the middlewares work without Express`;
    const atRunTime = own === 'types' && !typeOnly;
    return atRunTime ? `imports ${specifier} at run time: types/ contains types only` : undefined;
  }
  const path = posix.join(dirname(file), specifier);
  const area = areaOf(path);
  if (typeOnly || area === own) return undefined;
  if (!RANKS.has(area)) return `imports ${path}: ${noLayer(path)}`;
  return RANKS.get(area) < RANKS.get(own) ? undefined : `imports ${path}: ${area} is not below ${own}`;
}

function checkCycles() {
  return findCycles(modules).map((cycle) => ({
    rule: 'cycle',
    place: cycle[0],
    message: [...cycle.slice(1), cycle[0]].map((file) => `imports ${file}`).join(', which '),
  }));
}

function checkFunctionSizes() {
  return measured.flatMap(([file, { functions }]) =>
    functions.flatMap(({ line, lines, ownLines }) => [
      ...excess(`${file}:${line}`, lines, MAX_FUNCTION_LINES, 'with inner functions'),
      ...excess(`${file}:${line}`, ownLines, MAX_OWN_LINES, 'without inner functions'),
    ]),
  );
}

function excess(place, lines, limit, what) {
  return lines > limit
    ? [{ rule: 'function-size', place, message: `${lines} lines ${what}, at most ${limit}` }]
    : [];
}

function checkEscapes() {
  return measured.flatMap(([file, { text, anyTypes }]) => {
    const matches = [...text.matchAll(ESCAPES)]
      .filter(([match]) => !(match === 'console.' && file === LOGGING))
      .map(({ 0: match, index }) => [match, text.slice(0, index).split('\n').length]);
    return [...matches, ...anyTypes.map((line) => ['any', line])].map(([match, line]) => ({
      rule: 'escape',
      place: `${file}:${line}`,
      message: `"${match}" is not allowed`,
    }));
  });
}
