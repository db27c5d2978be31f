import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import { createGraphiQL } from '../graphiql/handler.ts';
import { toError } from '../http/reply/to-error.ts';
import { type Reply, writeReply } from '../http/reply/write-reply.ts';
import { isRouted } from '../http/routing/express-route.ts';
import { pathOf } from '../http/routing/url-path.ts';
import type { Handler } from './handler.ts';
import type { HttpSettings } from './options.ts';

/** What a mount answers beside the API: the IDE and its files; what lies below it otherwise belongs to others. */
export function createMount(settings: HttpSettings, api: Handler): Handler {
  const ide = settings.methods.includes('GET') ? createGraphiQL(settings.graphiql) : undefined;
  const mount: Handler = (req, res, next) => {
    const routed = isRouted(req, mount);
    const below = next !== undefined && !routed && isBelow(req);
    if (ide !== undefined && (req.method === 'GET' || req.method === 'HEAD')) {
      const fail: NextFunction = next ?? (() => writeReply(res, BROKEN, false));
      const answered = ide.handle(req, res, { below, routed, next: fail });
      if (answered !== undefined) {
        answered.then(
          (done) => done || api(req, res, next),
          (error) => fail(toError(error)),
        );
        return;
      }
    }
    if (below) next();
    else api(req, res, next);
  };
  return mount;
}

/** What a bare server, which has no error handlers, says of a fault of ours. */
const BROKEN: Reply = {
  status: 500,
  headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
  body: 'Internal Server Error\n',
};

/** True for a path below a mount that has stripped its prefix. */
function isBelow({ url = '/', originalUrl }: ConnectRequest): boolean {
  if (url.length <= 1 || url[1] === '?' || originalUrl === undefined || originalUrl.length === url.length)
    return false;
  return pathOf(url).length > 1;
}
