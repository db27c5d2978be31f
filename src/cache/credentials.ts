import type { ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { ConnectRequest } from '../../types/connect.ts';
import { cacheByText } from '../http/negotiation.ts';
import { hasParameter } from '../http/routing.ts';

/**
 * Headers of API keys, tokens, signatures, and proxies that authenticate the user or check client certificates; not
 * HTTP/2's `:authority`.
 */
const CREDENTIAL_NAME =
  /^(?!:).*(?:token|api-?key|access-?key|auth|session|jwt|oidc|dpop|signature|secret|passw|credential|client-?cert|ssl-.*-dn|(?<!^sec-fetch-)user(?!-agent)|login|account|customer|email|principal|identity)/;

/** Parameters of the URL that contain credentials, such as `access_token` (RFC 6750 §2.3). */
const CREDENTIAL_PARAMETER =
  /token|(?:api|access)[-_]?key|auth|session|jwt|signature|secret|passw|credential|user|login/i;

const isCredentialParameter = (name: string): boolean => CREDENTIAL_PARAMETER.test(name);

/** Whether a header names a user, by its name. Clients choose the names of headers, so few are kept. */
const isCredential = cacheByText((name) => name === 'cookie' || CREDENTIAL_NAME.test(name), {
  entries: 500,
  length: 64,
});

/**
 * Whether a response may depend on the user that sent the request. Without a key that separates users it must
 * not be stored by shared caches, also if the schema declares it public.
 */
export function hasCredentials(req: ConnectRequest, res: ServerResponse): boolean {
  for (const name in req.headers) if (isCredential(name)) return true;
  return hasParameter(req.url ?? '', isCredentialParameter) || hasUser(req, res);
}

/** Whether middleware, the connection or a resolver has identified the user. */
export function hasUser(req: ConnectRequest, res: ServerResponse): boolean {
  // Authentication and session middleware add these members.
  if ('user' in req || 'auth' in req || hasSession(req)) return true;
  if (hasCertificate(req.socket as Partial<TLSSocket>)) return true;
  return res.getHeader('set-cookie') !== undefined;
}

/**
 * Whether the response may set the cookie of a session. Middleware such as `express-session` does so when the head is
 * written, after the other headers are known.
 */
export const maySetCookie = (req: ConnectRequest, res: ServerResponse): boolean =>
  hasSession(req) || res.hasHeader('set-cookie');

const hasSession = (req: ConnectRequest): boolean => 'session' in req || 'sessionID' in req;

/** Whether the client has sent a certificate, also if only the application verifies it (`rejectUnauthorized: false`). */
function hasCertificate(socket: Partial<TLSSocket>): boolean {
  if (socket.authorized === true) return true;
  // Without a request for certificates there is no error. An empty object stands for no certificate.
  if (socket.authorizationError == null) return false;
  return Object.keys(socket.getPeerCertificate?.() ?? {}).length > 0;
}
