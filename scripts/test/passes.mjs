// Which test files run with which versions. Each list names parts of paths below test/; a test checks that each still
// matches a file.
import { graphql17 } from '../neighbours.mjs';
import { readsTestAll } from './files.mjs';

/** The version of Node that runs this script. */
export const HERE = Number(process.versions.node.split('.')[0]);

export const LISTS = {
  /** Depend neither on the version of Node nor on the engine. */
  once: [
    'browser',
    'mcp/memory',
    'package',
    'first-example',
    'install',
    'neighbours/',
    'readme',
    'snippets',
    'boundaries',
    'workflows',
    'scripts',
    'commands',
    'deployment',
    'docs',
    'site/',
    'documents/attacks',
    'documents/reload',
    'caching/(processes|leaks|memory|redis-cluster|shared-caches)',
    'cost/budget',
    'cursors/(faults|refusals)',
    'events/',
    'pubsub/(deployments|history|partition|idle-topics)',
    'redis-(clients|other-clients|settings|urls)',
    // graphql-query-complexity does not support graphql 17.
    'cost/oracle',
  ],
  /** Use packages that their own folders install. */
  installed: ['neighbours/', 'site/'],
  /** Take longest, and check in more depth what others check as well. */
  slow: [
    'browser-(caching|dictionaries|event-source|graphiql-incremental|inspect|photo-wall|streaming|uploads)',
    'caching/(interrupted-mutations|leaks|memory|processes|redis-cluster|shared-caches)',
    'commands',
    'cost/(budget|oracle)',
    'cursors/(client|faults|refusals)',
    'documents/(attacks|check-command|reload)',
    'engine/document-memory',
    'events/conformance',
    'examples/(examples|photo-wall)',
    'graphql/(floods|handler-memory|http2-memory|long-responses|wrapped-responses)',
    'otel/metrics',
    'package',
    'pubsub/(deployments|history|idle-topics|partition|processes|slow-readers)',
    'redis-clients',
    'server/(certificate-renewal|http2-websockets)',
    'snippets',
    'static/(copies-of-tools|deployments|growing-files|http2-memory|incomplete-responses|memory-budget|read-on-loop)',
    'streaming/(incremental-fuzz|slow-clients)',
    'subscriptions/(bursts|long-documents|slow-clients)',
    'testing/handles',
    'uploads/drain',
  ],
  /** Use no engine, choose one themselves, or test the transport of results. */
  withoutDefaultEngine: [
    'options',
    'static/',
    'server/',
    'examples/',
    'engine/',
    'pubsub/',
    'caching/redis-store',
    'graphql/wrapped-responses',
    'streaming/slow-clients',
    'subscriptions/slow-clients',
    'uploads/drain',
  ],
  /** Compute without timers, sockets and files: one version of Node is enough for each version of graphql. */
  computing: [
    'auth/incremental',
    'caching/(argument-tags|dynamic-hints|headers|invalidation|policy|query-descriptions|response-cache|what-is-stored)',
    'callbacks',
    'cost/',
    'documents/(check-command|ids|openapi|trusted)',
    'engine/',
    'graphiql/',
    'graphql/(audits|checklist|error-codes|errors|failed-batches|floods|introspection|json|limits|on-operation)',
    'graphql/(prototype-members|unreadable-errors)',
    'mistakes/',
    'reports',
    'streaming/incremental-',
  ],
  /** GraphiQL, clients of incremental delivery, schema changes and the fuzz of `auth`: once for each version of graphql. */
  oncePerGraphql: ['browser-graphiql', 'neighbours/(authorization|incremental|schema-changes)'],
};

const { once, installed, slow, withoutDefaultEngine, computing, oncePerGraphql } = Object.fromEntries(
  Object.entries(LISTS).map(([name, parts]) => [name, new RegExp(`^test/(${parts.join('|')})`)]),
);

/**
 * The passes over some test files. A pass has a name, its files, the versions of Node and graphql, an engine, and whether
 * the tests are thorough: more random cases, Express 4 as well as 5.
 */
export function passesOf(files, { quick, matrix, isNamed }) {
  const not = (...lists) => files.filter((file) => !lists.some((list) => list.test(file)));
  const first = { node: HERE, graphql: 16, engine: 'compiled', isThorough: false };
  // Tests that are named run in any case.
  const quickly = isNamed && !matrix ? not(installed) : not(installed, slow);
  const thoroughly = files.filter((file) => slow.test(file) || installed.test(file) || readsTestAll(file));
  const passes = [
    ...(quick ? [{ ...first, files: quickly }] : []),
    ...(matrix
      ? [
          { ...first, isThorough: true, files: thoroughly },
          { ...first, engine: 'graphql-js', files: not(once, withoutDefaultEngine, slow) },
          // Each version of Node with one of graphql, and each version of graphql with two of Node.
          ...[
            { node: 20, graphql: 16, files: not(once, computing) },
            {
              node: 22,
              graphql: 17,
              files: not(once).concat(files.filter((file) => oncePerGraphql.test(file))),
            },
            { node: 24, graphql: 16, files: not(once, computing) },
            { node: 26, graphql: 17, files: not(once, computing, slow) },
          ]
            .filter(({ node, graphql }) => node !== HERE || graphql !== 16)
            .map((pass) => ({ ...first, ...pass })),
        ]
      : []),
  ];
  return passes.filter((pass) => pass.files.length > 0).map((pass) => ({ ...pass, name: nameOf(pass) }));
}

function nameOf({ node, graphql, engine, isThorough }) {
  return `Node ${node}, graphql ${graphql}, engine ${engine}${isThorough ? ', slow and thorough' : ''}`;
}

/** The modules that the tests of a pass load in place of others. */
export function mapperOf({ graphql, engine }) {
  return {
    ...(graphql === 17 ? { '^graphql$': graphql17 } : {}),
    ...(engine === 'compiled'
      ? {}
      : { '/core/default-engine\\.ts$': '<rootDir>/test/engine/graphql-js-by-default.ts' }),
    '^espalier$': '<rootDir>/middleware/index.ts',
    '^espalier/client$': '<rootDir>/client/index.ts',
    '^espalier/(static|graphql|subscriptions|server|pubsub|sources|testing|otel|inspect|cache|auth|mcp)$':
      '<rootDir>/middleware/$1.ts',
  };
}
