// Checks the layout of the sources: the direction of imports, cycles, and the sizes of folders, files and functions.
// Usage: node scripts/check-layout.mjs [root]. Prints one line per violation and exits with 1 if there are violations.
import { dirname, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findCycles } from './layout/cycles.mjs';
import { readSources } from './layout/parse.mjs';

// Imports go to a folder of a lower rank only, types included. Folders of equal rank do not import each other.
const RANKS = {
  middleware: 10,
  'src/graphql': 9,
  'src/websocket': 9,
  'src/graphiql': 8,
  'src/inspect': 8,
  'src/otel': 8,
  'src/streams': 8,
  'src/subscriptions': 7,
  'src/uploads': 6,
  'src/cli': 6,
  'src/testing': 2,
  'src/core': 5,
  'src/engine': 4,
  'src/cursors': 4,
  'src/execution': 3,
  'src/static': 3,
  'src/server': 3,
  'src/pubsub': 3,
  'src/cache': 3,
  'src/redis': 2,
  'src/http': 2,
  'src/diagnostics': 1,
  'src/logging': 1,
  'src/options': 1,
  types: 0,
};
// The browser's part of GraphiQL is not part of the package's modules: only its imports and its folders are checked.
const APP = 'src/graphiql/app/';
// The one folder that may write to the console.
const LOGGING = 'src/logging/';

const MAX_FILES = 12;
const MAX_LINES = 200;
const MAX_OWN_LINES = 45;
const MAX_FUNCTION_LINES = 80;
const MEDIAN_FILE_LINES = 100;
const MEDIAN_FUNCTION_LINES = 14;
const ESCAPES = /\bas never\b|\bas unknown as\b|@ts-|biome-ignore|TODO|FIXME|\bconsole\./g;

const { files, modules } = readSources(process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)));
const measured = [...modules].filter(([file]) => !file.startsWith(APP));
const violations = [
  ...checkFolderSizes(),
  ...checkDirection(),
  ...checkCycles(),
  ...checkSizes(),
  ...checkMedians(),
  ...checkEscapes(),
];
for (const { rule, place, message } of violations) console.log(`${rule}: ${place}: ${message}`);
if (violations.length > 0) process.exitCode = 1;
else console.log(`Layout: ${modules.size} modules, no violation`);

function checkFolderSizes() {
  const counts = new Map();
  for (const file of files) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
  return [...counts]
    .filter(([folder, count]) => folder.startsWith('src/') && count > MAX_FILES)
    .map(([folder, count]) => ({
      rule: 'folder-size',
      place: folder,
      message: `${count} files, at most ${MAX_FILES}: move some into a sub-folder`,
    }));
}

/** The ranked folder of a path. */
function areaOf(path) {
  const [top, second] = path.split('/');
  return top === 'src' ? `${top}/${second}` : top;
}

function checkDirection() {
  return [...modules].flatMap(([file, { imports }]) => {
    const messages =
      areaOf(file) in RANKS ? imports.map((entry) => directionOf(file, entry)) : [noRank(file)];
    return messages
      .filter((message) => message !== undefined)
      .map((message) => ({ rule: 'direction', place: file, message }));
  });
}

function noRank(path) {
  return `${areaOf(path)} has no rank: use a ranked folder, or add a rank in scripts/check-layout.mjs`;
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
  if (area === own) return undefined;
  if (!(area in RANKS)) return `imports ${path}: ${noRank(path)}`;
  if (RANKS[area] < RANKS[own]) return undefined;
  return `imports ${path}: ${own} has rank ${RANKS[own]}, ${area} has rank ${RANKS[area]}`;
}

function checkCycles() {
  const imports = [...modules].flatMap(([file, { targets }]) =>
    targets.filter((target) => target !== file).map((target) => [file, target]),
  );
  return findCycles(imports).map(({ folder, members, imports }) => ({
    rule: 'cycle',
    place: folder,
    message: `${members.join(', ')} (${imports.join('; ')})`,
  }));
}

function checkSizes() {
  return measured.flatMap(([file, { lines, functions }]) => [
    ...excess('file-size', file, lines, MAX_LINES),
    ...functions.flatMap((entry) => [
      ...excess(
        'function-size',
        `${file}:${entry.line}`,
        entry.lines,
        MAX_FUNCTION_LINES,
        ', inner functions included',
      ),
      ...excess(
        'function-size',
        `${file}:${entry.line}`,
        entry.ownLines,
        MAX_OWN_LINES,
        ' without inner functions',
      ),
    ]),
  ]);
}

function excess(rule, place, lines, limit, what = '') {
  return lines > limit ? [{ rule, place, message: `${lines} lines${what}, at most ${limit}` }] : [];
}

function checkMedians() {
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1] ?? 0;
  const fileLines = measured.map(([, { lines }]) => lines);
  const functionLines = measured.flatMap(([, { functions }]) => functions.map(({ ownLines }) => ownLines));
  return [
    ...excess('median', 'files', median(fileLines), MEDIAN_FILE_LINES),
    ...excess('median', 'functions', median(functionLines.filter((own) => own > 1)), MEDIAN_FUNCTION_LINES),
  ];
}

function checkEscapes() {
  return measured.flatMap(([file, { text, anyTypes }]) => {
    const matches = [...text.matchAll(ESCAPES)]
      .filter(([match]) => !(match === 'console.' && file.startsWith(LOGGING)))
      .map(({ 0: match, index }) => [match, text.slice(0, index).split('\n').length]);
    return [...matches, ...anyTypes.map((line) => ['any', line])].map(([match, line]) => ({
      rule: 'escape',
      place: `${file}:${line}`,
      message: `"${match}" is not allowed`,
    }));
  });
}
