import nodeModule from 'node:module';
import type debug from 'debug';
import type etag from 'etag';
import type * as graphqlWs from 'graphql-ws';
import type * as lruCache from 'lru-cache';
import type multer from 'multer';
import type send from 'send';
import type * as ws from 'ws';

interface Packages {
  debug(): typeof debug;
  etag(): typeof etag;
  graphqlWs(): Pick<typeof graphqlWs, 'validateMessage' | 'MessageType'>;
  lruCache(): typeof lruCache;
  multer(): typeof multer;
  send(): typeof send;
  ws(): typeof ws;
  graphiql(): typeof import('#graphiql');
}

const require = nodeModule.createRequire(import.meta.url);

/**
 * The packages that a middleware loads when it is created, and not with its own modules: many applications need few of
 * them. `require` is synchronous: no request waits for a package, or is the first to need one when the process has no
 * free descriptor. An `import()` that has failed for that reason fails for ever on Node 20.
 *
 * The build writes these functions to a module of their own, which bundlers can follow: see scripts/bundle.mjs.
 */
export const packages: Packages = {
  debug: () => require('debug'),
  etag: () => require('etag'),
  // Its server would load graphql as a CommonJS module.
  graphqlWs: () => require('graphql-ws/client'),
  lruCache: () => require('lru-cache'),
  multer: () => require('multer'),
  send: () => require('send'),
  ws: () => require('ws'),
  graphiql: () => require('#graphiql'),
};
