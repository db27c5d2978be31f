import type { IncomingMessage } from 'node:http';

/** The method of an Express app that returns a setting. */
export interface Settings {
  get?(setting: string): unknown;
}

const appOf = (req: IncomingMessage & { readonly app?: Settings }): Settings | undefined => req.app;

/**
 * The host that a request was sent to, with the port unless it is the default. HTTP/2 sends it as `:authority`, which
 * proxies route by: a `Host` besides it does not count (RFC 9113 §8.3.1).
 */
function hostOf({ headers }: IncomingMessage): string | undefined {
  return (headers[':authority'] as string | undefined) ?? headers.host;
}

/**
 * The host that the client sees: `X-Forwarded-Host` if the setting `trust proxy` of Express trusts the proxy,
 * else `Host`. Any client can send the header, so it is ignored without the setting. Upgrade requests have no
 * `app`: pass that of the server.
 */
export function publicHostOf(req: IncomingMessage, app?: Settings): string | undefined {
  return forwarded(req, 'x-forwarded-host', app) ?? hostOf(req);
}

/** Whether an `Origin` is the origin that a request was sent to. */
export function isOwnOrigin(req: IncomingMessage, origin: string, app?: Settings): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host } = new URL(origin);
  if (protocol !== (publicSchemeOf(req, app) ?? protocol)) return false;
  const publicHost = publicHostOf(req, app);
  if (publicHost === undefined || !URL.canParse(`${protocol}//${publicHost}`)) return false;
  return new URL(`${protocol}//${publicHost}`).host === host;
}

/** Returns undefined for plain HTTP without a trusted proxy: an unknown proxy may have terminated TLS. */
function publicSchemeOf(req: IncomingMessage, app: Settings | undefined): string | undefined {
  const scheme = forwarded(req, 'x-forwarded-proto', app);
  if (scheme !== undefined) return `${scheme.toLowerCase()}:`;
  return 'encrypted' in req.socket ? 'https:' : undefined;
}

/** The first value of a forwarding header, if the proxy is trusted. */
function forwarded(req: IncomingMessage, header: string, app: Settings | undefined): string | undefined {
  const value = req.headers[header];
  if (typeof value !== 'string' || value === '') return undefined;
  const trust = (app ?? appOf(req))?.get?.('trust proxy fn');
  if (typeof trust !== 'function' || !trust(req.socket.remoteAddress, 0)) return undefined;
  return value.split(',', 1)[0]?.trim();
}

/** Whether the host of a request is allowed. */
export type HostCheck = (req: IncomingMessage) => boolean;

/** Creates the check of the option `allowedHosts`. */
export function createHostCheck(allowedHosts: readonly string[]): HostCheck {
  const hosts = new Set(allowedHosts.map((host) => host.toLowerCase()));
  return (req) => hosts.has((hostOf(req) ?? '').toLowerCase());
}
