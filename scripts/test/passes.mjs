// Which test files run with which versions. Each list names parts of paths below test/; a test checks that each still
// matches a file.
import { graphql17 } from '../neighbours.mjs';
import { readsTestAll } from './files.mjs';

/** The version of Node that runs this script. */
export const HERE = Number(process.versions.node.split('.')[0]);

export const LISTS = {
  /** Depend neither on the version of Node nor on the engine. */
  once: [
    'package/',
    'project/',
    'docs/',
    'neighbours/',
    'site/',
    'cache/(in-chromium|processes|leaks|memory-store|redis-cluster|shared-caches)',
    'core/(malicious-ids|trusted-reload)',
    'cost/budget',
    'examples/photo-wall-in-chromium',
    'graphiql/(in-chromium|incremental-in-chromium)',
    'graphql/csrf-in-chromium',
    'inspect/in-chromium',
    'live/(event-source-in-chromium|streams-in-chromium)',
    'live/cursors/(faults|refusals)',
    'postgres/',
    'pubsub/(conformance|deployments|history|idle-topics|outage|partition)',
    'redis/(clients|other-clients|settings|urls)',
    'static/(dictionaries-in-chromium|listing-in-chromium|variants-in-chromium)',
    'uploads/in-chromium',
    // graphql-query-complexity does not support graphql 17.
    'cost/oracle',
  ],
  /** Use packages that their own folders install. */
  installed: ['neighbours/', 'site/'],
  /** Take longest, and check in more depth what others check as well. */
  slow: [
    'cache/(in-chromium|interrupted-mutations|leaks|memory-store|processes|redis-cluster|shared-caches)',
    'cli/check-documents',
    'core/(malicious-ids|trusted-reload)',
    'cost/(budget|oracle)',
    'docs/(commands|snippets.test)',
    'engine/document-memory',
    'examples/(examples|photo-wall)',
    'graphiql/incremental-in-chromium',
    'graphql/(floods|handler-memory|http2-memory|incremental-fuzz|long-responses|wrapped-responses)',
    'http/drain',
    'inspect/in-chromium',
    'live/(bursts|event-source-in-chromium|long-documents|slow-clients|slow-stream-clients|streams-in-chromium)',
    'live/cursors/(client|faults|refusals)',
    'otel/metrics',
    'package/package',
    'pubsub/(conformance|deployments|history|idle-topics|partition|processes|slow-readers)',
    'redis/clients',
    'server/(certificate-renewal|http2-websockets)',
    'static/(cache.test|copies-of-tools|deployments|dictionaries-in-chromium|growing-files|http2-memory)',
    'static/(incomplete-responses|read-on-loop)',
    'testing/handles',
    'uploads/in-chromium',
  ],
  /** Use no engine, choose one themselves, or test the transport of results. */
  withoutDefaultEngine: [
    'cache/redis-store',
    'cli/compress',
    'engine/',
    'examples/',
    'execution/guard',
    'graphql/wrapped-responses',
    'http/(conditions|drain)',
    'live/(slow-clients|slow-stream-clients)',
    'options/rules',
    'pubsub/',
    'server/',
    'static/',
  ],
  /** Compute without timers, sockets and files: one version of Node is enough for each version of graphql. */
  computing: [
    'auth/incremental',
    'cache/(argument-tags|dynamic-hints|headers|invalidation|policy|response-cache|what-is-stored)',
    'cli/check-documents',
    'core/(by-id.test|error-reports|errors|limits|trusted.test)',
    'cost/',
    'engine/',
    'execution/guard',
    'graphiql/',
    'graphql/(execution|failed-batches|floods|http-audits|incremental-|introspection|on-operation)',
    'graphql/(prototype-members|unreadable-errors)',
    'http/json-limits',
    'options/(failing-functions|mistakes)',
  ],
  /** GraphiQL, clients of incremental delivery, schema changes and the fuzz of `auth`: once for each version of graphql. */
  oncePerGraphql: [
    'graphiql/(in-chromium|incremental-in-chromium)',
    'neighbours/(authorization|incremental|schema-changes)',
  ],
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
