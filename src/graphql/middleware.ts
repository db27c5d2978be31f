import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import { createGraphiQL } from '../graphiql/handler.ts';
import { toError } from '../http/reply/to-error.ts';
import { type Reply, writeReply } from '../http/reply/write-reply.ts';
import { isRouted } from '../http/routing/express-route.ts';
import { pathOf } from '../http/routing/url-path.ts';
import type { Handler } from './handler.ts';
import type { HttpSettings } from './options.ts';

/** Creates the middleware: the handler of GraphQL requests together with the IDE. Other paths below a mount go to `next`. */
export function createMiddleware(settings: HttpSettings, handleGraphQL: Handler): Handler {
  const graphiql = settings.methods.includes('GET') ? createGraphiQL(settings.graphiql) : undefined;
  const middleware: Handler = (req, res, next) => {
    const routed = isRouted(req, middleware);
    const below = next !== undefined && !routed && isBelowMount(req);
    if (graphiql !== undefined && (req.method === 'GET' || req.method === 'HEAD')) {
      const fail: NextFunction = next ?? (() => writeReply(req, res, SERVER_ERROR));
      const handled = graphiql.handle(req, res, { below, routed, next: fail });
      if (handled !== undefined) {
        handled.then(
          (done) => done || handleGraphQL(req, res, next),
          (error) => fail(toError(error)),
        );
        return;
      }
    }
    if (below) next();
    else handleGraphQL(req, res, next);
  };
  return middleware;
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
