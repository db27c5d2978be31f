// Which test files run with which versions of Node and graphql, and with which engine. A file says in the pragma @tags of
// its first line what its results may depend on, so that a combination runs only the files that can fail there and
// nowhere else.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { graphql17 } from '../neighbours.mjs';
import { readsTestAll, root } from './files.mjs';

/** The version of Node that runs this script. */
export const HERE = Number(process.versions.node.split('.')[0]);

/** What a test file may say of itself. */
export const TAGS = {
  once: 'depends on none of the following: one combination proves it',
  node: 'sockets, HTTP, files, streams, timers, or another part of Node that a major version may change',
  'node-lines': 'an API that changed between two of the supported versions of Node',
  graphql: 'messages, validation, execution or types of graphql',
  engine: 'what an engine computes, without choosing both engines itself',
  slow: 'takes long, and checks in more depth what other files check as well: not part of npm test',
  alone: 'measures memory, time or descriptors of its process: runs beside no other file',
};

/** Parts of `.ci/run` and of the workflow, which run side by side there. */
const LINES = [20, 22, 24].filter((line) => line !== HERE);
const first = { node: HERE, graphql: 16, engine: 'compiled', isThorough: false };

/** Each pass, and the sentence that says what can differ in it. */
export const PASSES = [
  {
    ...first,
    part: 'lowest',
    proves: 'All that the package does, with the versions that are supported longest.',
    select: ({ tags, isInstalled }) => !tags.has('slow') && !isInstalled,
  },
  {
    ...first,
    part: 'slow',
    isThorough: true,
    proves:
      'Rare and expensive cases: more random input, Express 4, other packages, whole processes, browsers.',
    select: ({ tags, isInstalled, isThorough }) => tags.has('slow') || isInstalled || isThorough,
  },
  {
    ...first,
    part: 'highest',
    node: 26,
    graphql: 17,
    proves:
      'What Node changes between majors, and what graphql 17 words, validates, executes or exports differently.',
    select: ({ tags }) => tags.has('node') || tags.has('node-lines') || tags.has('graphql'),
  },
  ...LINES.map((node) => ({
    ...first,
    part: 'middle',
    node,
    proves: `APIs of Node that Node ${node} has in another form than the lines around it.`,
    select: ({ tags }) => tags.has('node-lines'),
  })),
  {
    ...first,
    part: 'engines',
    engine: 'graphql-js',
    proves: 'What an application sees of the engine: the order of resolvers, errors, `info`, streams.',
    select: ({ tags }) => tags.has('engine'),
  },
  {
    ...first,
    part: 'engines',
    node: 26,
    graphql: 17,
    engine: 'graphql-js',
    proves: 'The same with the executor of graphql 17, which is another one.',
    select: ({ tags }) => tags.has('engine'),
  },
].map((pass) => ({ ...pass, name: nameOf(pass) }));

/** The parts in the order in which they run. `lowest` is `npm test`; the others are the matrix. */
export const PARTS = [...new Set(PASSES.map(({ part }) => part))];

function nameOf({ node, graphql, engine, isThorough }) {
  return `Node ${node}, graphql ${graphql}, engine ${engine}${isThorough ? ', slow and thorough' : ''}`;
}

/** What a test file says of itself, and which packages it needs. */
export function describeFile(file) {
  const [, names] = /^\/\*\* @tags ([\w -]+) \*\/$/m.exec(readFileSync(join(root, file), 'utf8')) ?? [];
  return {
    file,
    tags: new Set(names?.split(' ')),
    // Packages that a folder of tests installs.
    isInstalled: /^test\/(neighbours|site)\//.test(file),
    isThorough: readsTestAll(file),
  };
}

/**
 * The passes over some test files, each with those that it runs. Files that are named run in `lowest` in any case, except
 * those that need packages of their own.
 */
export function passesOf(files, { parts, isNamed }) {
  const described = files.map(describeFile);
  return PASSES.filter(({ part }) => parts.includes(part))
    .map((pass) => {
      const isSelected =
        isNamed && pass.part === 'lowest' && parts.length === 1
          ? ({ isInstalled }) => !isInstalled
          : pass.select;
      const selected = described.filter(isSelected);
      return {
        ...pass,
        files: selected.filter(({ tags }) => !tags.has('alone')).map(({ file }) => file),
        alone: selected.filter(({ tags }) => tags.has('alone')).map(({ file }) => file),
      };
    })
    .filter(({ files, alone }) => files.length + alone.length > 0);
}

const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** The modules that the tests of a pass load in place of others. */
export function mapperOf({ graphql, engine }) {
  const entries = Object.keys(exports)
    .map((name) => name.slice(2))
    .filter((name) => name !== '' && name !== 'client' && name !== 'package.json');
  return {
    ...(graphql === 17 ? { '^graphql$': graphql17 } : {}),
    ...(engine === 'compiled'
      ? {}
      : { '/core/default-engine\\.ts$': '<rootDir>/test/engine/graphql-js-by-default.ts' }),
    '^espalier$': '<rootDir>/middleware/index.ts',
    '^espalier/client$': '<rootDir>/client/index.ts',
    [`^espalier/(${entries.join('|')})$`]: '<rootDir>/middleware/$1.ts',
  };
}
