import type { ConnectRequest } from '../../types/connect.ts';
import { createIde } from '../graphiql/ide.ts';
import { writeReply } from '../http/reply.ts';
import type { Handler } from './handler.ts';
import type { HttpSettings } from './http-settings.ts';

/** What a mount answers beside the API: the IDE and its files; what lies below it otherwise belongs to others. */
export function createMount(settings: HttpSettings, api: Handler): Handler {
  const ide = settings.methods.includes('GET') ? createIde(settings.graphiql) : undefined;
  return (req, res, next) => {
    const asks = ide !== undefined && (req.method === 'GET' || req.method === 'HEAD');
    const page = asks ? ide.reply(req, res) : undefined;
    if (page !== undefined) {
      page.then(
        (reply) =>
          reply === undefined ? api(req, res, next) : writeReply(res, reply, req.method === 'HEAD'),
        (error: unknown) => next?.(error),
      );
    } else if (next !== undefined && isBelow(req)) next();
    else api(req, res, next);
  };
}

/** True for a path below a mount that has stripped its prefix; an exact route has stripped nothing. */
function isBelow({ url = '/', originalUrl }: ConnectRequest): boolean {
  if (url.length <= 1 || url[1] === '?' || originalUrl === undefined) return false;
  return originalUrl.length > url.length;
}
