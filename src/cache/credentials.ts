import type { ServerResponse } from 'node:http';
import type { ConnectRequest } from '../../types/connect.ts';
import { hasCertificate } from '../http/exchange.ts';
import { hasParameter } from '../http/routing.ts';
import identity from './identity.json' with { type: 'json' };

/**
 * Request headers that identify a user: credentials, client certificates, and what the known gateways and proxies add
 * after they have authenticated the user.
 */
const IDENTITY_HEADERS: ReadonlySet<string> = new Set(identity.headers);

/** Parameters of the URL that identify a user, such as `access_token` (RFC 6750 §2.3). */
const IDENTITY_PARAMETERS: ReadonlySet<string> = new Set(identity.parameters);

const isIdentityParameter = (name: string): boolean => IDENTITY_PARAMETERS.has(name.toLowerCase());

/**
 * Whether a response may depend on the user that sent the request. Without a key that separates users it must
 * not be stored by shared caches, also if the schema declares it public.
 */
export function hasCredentials(req: ConnectRequest, res: ServerResponse): boolean {
  for (const name in req.headers) if (IDENTITY_HEADERS.has(name)) return true;
  // Middleware that has read a token may have removed it from `url`, or added it there.
  const { url = '', originalUrl = url } = req;
  return [url, originalUrl].some((each) => hasParameter(each, isIdentityParameter)) || hasUser(req, res);
}

/** Whether middleware, the connection or a resolver has identified the user. */
export function hasUser(req: ConnectRequest, res: ServerResponse): boolean {
  // Authentication and session middleware add these members.
  if ('user' in req || 'auth' in req || hasSession(req)) return true;
  if (hasCertificate(req)) return true;
  return res.getHeader('set-cookie') !== undefined;
}

/**
 * Whether the response may set the cookie of a session. Middleware such as `express-session` does so when the head is
 * written, after the other headers are known.
 */
export const maySetCookie = (req: ConnectRequest, res: ServerResponse): boolean =>
  hasSession(req) || res.hasHeader('set-cookie');

const hasSession = (req: ConnectRequest): boolean => 'session' in req || 'sessionID' in req;
