import type { IncomingMessage } from 'node:http';
import { isOwnOrigin, publicHostOf, type Settings } from '../../http/routing/host.ts';
import { assertSync } from '../../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../../options/scopes.ts';

/** The option `allowedOrigins`. */
export type AllowedOrigins =
  | '*'
  | readonly string[]
  | ((origin: string, request: IncomingMessage) => boolean);

/** The origin of the page that opens a WebSocket; undefined for clients that are not browsers. */
function originOf({ headers }: IncomingMessage): string | readonly string[] | undefined {
  return headers.origin ?? headers['sec-websocket-origin'];
}

/**
 * Browsers send cookies with WebSockets that any page opens (cross-site WebSocket hijacking), and the page's
 * origin. Allowed: requests without `Origin`, which browsers never send; our own host, with any scheme unless
 * our own socket uses TLS, because a proxy may terminate TLS; and the origins of the option. `app` is the
 * Express app of the server, whose setting `trust proxy` decides whether the headers of a proxy count.
 */
export function isOriginAllowed(
  req: IncomingMessage,
  allowed: AllowedOrigins,
  app: Settings | undefined,
): boolean {
  const origin = originOf(req);
  if (origin === undefined || allowed === '*') return true;
  if (typeof origin !== 'string') return false;
  if (typeof allowed === 'function') {
    return assertSync(allowed(origin, req), SUBSCRIPTION_OPTIONS, 'allowedOrigins');
  }
  return allowed.includes(origin) || isOwnHost(req, origin, app);
}

/** An opaque origin ("null"), or one with a path, equals no host. */
function isOwnHost(req: IncomingMessage, origin: string, app: Settings | undefined): boolean {
  if (!URL.canParse(origin) || new URL(origin).origin !== origin.toLowerCase()) return false;
  return isOwnOrigin(req, origin, app);
}

/** Describes why an origin is refused: with the host that it was compared with, and the option. */
export function originRefusal(
  req: IncomingMessage,
  allowed: AllowedOrigins,
  app: Settings | undefined,
): string {
  const origin = JSON.stringify(originOf(req));
  if (typeof allowed === 'function') return `"allowedOrigins" refused the origin ${origin}`;
  const host = JSON.stringify(publicHostOf(req, app));
  return `the origin ${origin} is not that of the host ${host} and not in "allowedOrigins"`;
}
