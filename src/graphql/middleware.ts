import type { ServerResponse } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import type { GraphQLCore } from '../core/core.ts';
import { createGraphiQL } from '../graphiql/handler.ts';
import { toError } from '../http/reply/to-error.ts';
import { type Reply, writeReply } from '../http/reply/write-reply.ts';
import { isRouted } from '../http/routing/express-route.ts';
import { pathOf } from '../http/routing/url-path.ts';
import type { Handler } from './handler.ts';
import type { HttpSettings } from './options.ts';

/** Creates the middleware from the GraphQL handler and the IDE. Passes other paths below a mount to `next`. */
export function createMiddleware(core: GraphQLCore, settings: HttpSettings, handleGraphQL: Handler): Handler {
  const graphiql = settings.methods.includes('GET') ? createGraphiQL(settings.graphiql) : undefined;
  const middleware: Handler = (req, res, next) => {
    const routed = isRouted(req, middleware);
    const below = next !== undefined && !routed && isBelowMount(req);
    if (graphiql !== undefined && (req.method === 'GET' || req.method === 'HEAD')) {
      const proceed: NextFunction = (error) => {
        if (error !== undefined) fail(core, error, { req, res, next });
        else if (next !== undefined) next();
        else writeReply(req, res, SERVER_ERROR);
      };
      const handled = graphiql.handle(req, res, { below, routed, next: proceed });
      if (handled !== undefined) {
        handled.then(
          (done) => done || handleGraphQL(req, res, next),
          (error: unknown) => fail(core, error, { req, res, next }),
        );
        return;
      }
    }
    if (below) next();
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
