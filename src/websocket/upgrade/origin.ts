import type { IncomingMessage } from 'node:http';
import { isOwnOrigin } from '../../http/routing/host.ts';
import { assertSync } from '../../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../../options/scopes.ts';

/** The option `allowedOrigins`. */
export type AllowedOrigins =
  | '*'
  | readonly string[]
  | ((origin: string, request: IncomingMessage) => boolean);

/**
 * Browsers send cookies with WebSockets that any page opens (cross-site WebSocket hijacking), and the page's origin.
 * Allowed: requests without `Origin`, which browsers never send; our own host, with any scheme
 * unless our own socket uses TLS, because a proxy may terminate TLS; and the origins of the option.
 */
export function isOriginAllowed(req: IncomingMessage, allowed: AllowedOrigins): boolean {
  const origin = req.headers.origin ?? req.headers['sec-websocket-origin'];
  if (origin === undefined || allowed === '*') return true;
  if (typeof origin !== 'string') return false;
  if (typeof allowed === 'function') {
    return assertSync(allowed(origin, req), SUBSCRIPTION_OPTIONS, 'allowedOrigins');
  }
  return allowed.includes(origin) || isOwnHost(req, origin);
}

/** An opaque origin ("null"), or one with a path, equals no host. */
function isOwnHost(req: IncomingMessage, origin: string): boolean {
  return URL.canParse(origin) && new URL(origin).origin === origin.toLowerCase() && isOwnOrigin(req, origin);
}
