import type { ServerResponse } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import type { GraphQLCore } from '../core/core.ts';
import { createGraphiQL } from '../graphiql/handler.ts';
import { type Reply, toError, writeReply } from '../http/reply.ts';
import { pathOf, withoutSlash } from '../http/routing.ts';
import type { Handler } from './handler.ts';
import type { HttpSettings } from './options.ts';
import { pathIdOf } from './request.ts';

/**
 * Creates the middleware from the GraphQL handler and the IDE. Passes other paths below a mount to `next`.
 */
export function createMiddleware(core: GraphQLCore, settings: HttpSettings, handleGraphQL: Handler): Handler {
  const graphiql = settings.methods.includes('GET') ? createGraphiQL(settings.graphiql) : undefined;
  const { documents } = core;
  const middleware: Handler = (req, res, next) => {
    const routed = isRouted(req, middleware);
    const below = next !== undefined && !routed && isBelowMount(req);
    if (graphiql !== undefined && (req.method === 'GET' || req.method === 'HEAD')) {
      const handled = graphiql.handle(req, res, { below, routed });
      if (handled !== undefined) {
        handled.then(
          (done) => done || handleGraphQL(req, res, next),
          (error: unknown) => fail(core, error, { req, res, next }),
        );
        return;
      }
    }
    if (below && (documents === undefined || pathIdOf(req, documents) === undefined)) next();
    else handleGraphQL(req, res, next);
  };
  return middleware;
}

/** Passes an unexpected error to `next`, or responds with 500 in a bare server. */
function fail(
  core: GraphQLCore,
  error: unknown,
  { req, res, next }: { req: ConnectRequest; res: ServerResponse; next: NextFunction | undefined },
): void {
  const origin = { transport: 'http', operationName: undefined, request: req, socket: undefined } as const;
  if (next !== undefined) {
    core.reportForwardedError(error, origin);
    next(toError(error));
    return;
  }
  core.reportError(error, origin);
  writeReply(req, res, SERVER_ERROR);
}

/** The response of a bare server, which has no error handlers. */
const SERVER_ERROR: Reply = {
  status: 500,
  headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
  body: 'Internal Server Error\n',
};

/** Whether the path continues below a mount that has stripped its prefix. */
function isBelowMount({ url = '/', originalUrl }: ConnectRequest): boolean {
  if (url.length <= 1 || url[1] === '?' || originalUrl === undefined || originalUrl.length === url.length) {
    return false;
  }
  return pathOf(url).length > 1;
}

/** The members of an Express route that are read here. */
interface Route {
  readonly path?: unknown;
  readonly stack?: readonly { readonly handle?: unknown }[];
}

/**
 * Whether `middleware` runs as a handler of a route (`router.post('/graphql', ...)`), which strips no prefix.
 * Testing `req.route` is not enough: Express leaves it set after the route has called `next`.
 */
function isRouted(req: ConnectRequest, middleware: unknown): boolean {
  const route = 'route' in req ? (req.route as Route | undefined) : undefined;
  if (route === undefined) return false;
  if (Array.isArray(route.stack) && route.stack.some(({ handle }) => handle === middleware)) return true;
  // The route may have a function that wraps the middleware.
  const path = withoutSlash(pathOf(req.url));
  return path !== '' && [route.path].flat().some((pattern) => isExactly(pattern, path));
}

/** Whether a pattern matches this path and no path below it. */
function isExactly(pattern: unknown, path: string): boolean {
  if (pattern instanceof RegExp) return pattern.test(path) && !pattern.test(`${path}/below`);
  if (typeof pattern !== 'string' || pattern.includes('*')) return false;
  const segments = withoutSlash(path).split('/');
  const wanted = withoutSlash(pattern).split('/');
  return segments.length === wanted.length && wanted.every((one, i) => isSegment(one, segments[i] as string));
}

/** Compares case-insensitively, as routes do by default; a segment with a parameter matches any segment. */
const isSegment = (pattern: string, segment: string): boolean =>
  /[:({]/.test(pattern) || pattern.toLowerCase() === segment.toLowerCase();
