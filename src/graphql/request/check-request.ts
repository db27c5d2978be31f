import { HttpError } from '../../http/reply/http-error.ts';
import type { Guard } from '../csrf.ts';
import type { Exchange } from '../exchange.ts';
import type { HttpSettings } from '../options.ts';
import { GRAPHQL_TYPE, isJsonType, JSON_TYPE } from './media-types.ts';
import { unsupported } from './read-request.ts';

/**
 * Refuses what can be refused by the head alone: method, host, Accept, and reads across sites.
 *
 * @throws HttpError 403, 405, 406, 415, 421.
 */
export function createAdmit({ methods }: HttpSettings, guard: Guard): (exchange: Exchange) => void {
  const known = new Set<string | undefined>(methods);
  const allow = methods.join(', ');
  return ({ req, accepted }) => {
    if (!known.has(req.method)) {
      throw new HttpError(405, `${req.method} is not a method of this endpoint; allowed: ${allow}`, {
        headers: { allow },
        code: 'METHOD_NOT_ALLOWED',
      });
    }
    guard.host(req);
    if (accepted.type === undefined) {
      throw new HttpError(406, `Acceptable are ${GRAPHQL_TYPE} and ${JSON_TYPE}`, { code: 'NOT_ACCEPTABLE' });
    }
    if (req.method === 'POST') return;
    // A GET with a body type that needs no preflight comes from a page that times answers across sites.
    const contentType = req.headers['content-type'];
    if (contentType !== undefined && !isJsonType(contentType)) throw unsupported('other');
    guard.read(req);
  };
}
