import type { IncomingMessage } from 'node:http';
import { assertSync } from '../options/assert-sync.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import type { UpgradeSettings } from './settings.ts';

/**
 * Browsers send cookies with a socket that any page opens (cross-site WebSocket hijacking), and name the page's origin.
 * No `Origin`: not a browser. Our own host, at whatever scheme a proxy speaks to us, and those listed may connect.
 */
export function isOriginAllowed(req: IncomingMessage, allowed: UpgradeSettings['allowedOrigins']): boolean {
  const origin = req.headers.origin ?? req.headers['sec-websocket-origin'];
  if (origin === undefined || allowed === '*') return true;
  if (typeof origin !== 'string') return false;
  if (typeof allowed === 'function')
    return assertSync(allowed(origin, req), SUBSCRIPTION_OPTIONS, 'allowedOrigins');
  return allowed.includes(origin) || isOwnHost(origin, req.headers.host);
}

function isOwnHost(origin: string, host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const { protocol, host: claimed, origin: canonical } = new URL(origin);
  // An opaque origin ("null") or one with a path is nobody's.
  if (canonical !== origin.toLowerCase() || !URL.canParse(`${protocol}//${host}`)) return false;
  return new URL(`${protocol}//${host}`).host === claimed;
}
