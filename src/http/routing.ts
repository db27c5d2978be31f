import type { IncomingMessage } from 'node:http';
import type { ConnectRequest } from '../../types/connect.ts';

const ORIGIN = /^https?:\/\/[^/?#]*/i;

/**
 * Returns the path of a request target, also of an absolute one (RFC 9112 §3.2.2); `''` if a mount has
 * stripped all of it.
 */
export function pathOf(url = '/'): string {
  const origin = url[0] === '/' ? undefined : ORIGIN.exec(url)?.[0];
  const path = origin === undefined ? url : url.slice(origin.length);
  const end = path.search(/[?#]/);
  return end === -1 ? path : path.slice(0, end);
}

/**
 * Whether a mount has stripped its prefix, which Express tells. Connect does not: there other code may have written a `url`
 * that is no end of the original.
 */
export function isMounted(req: ConnectRequest): boolean {
  const { url = '/', originalUrl } = req;
  if ('baseUrl' in req) return req.baseUrl !== '';
  return originalUrl !== undefined && originalUrl.length > url.length && originalUrl.endsWith(url);
}

/** Removes one slash at the end of a path. */
export const withoutSlash = (path: string): string => (path.endsWith('/') ? path.slice(0, -1) : path);

/** Decodes the percent-encoding of a part of a URL; undefined if it is malformed. */
export function decodePart(encoded: string): string | undefined {
  if (!encoded.includes('%')) return encoded;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

/** Whether a parameter of a URL has a name, as the application reads it, that passes a test. */
export function hasParameter(url: string, test: (name: string) => boolean): boolean {
  let from = url.indexOf('?') + 1;
  let equals = 0;
  while (from > 0 && from < url.length) {
    const next = url.indexOf('&', from);
    const end = next === -1 ? url.length : next;
    // Searched again only behind the last one, so that the time is linear in the length of the URL.
    if (equals !== -1 && equals < from) equals = url.indexOf('=', from);
    const name = url.slice(from, equals === -1 || equals > end ? end : equals);
    if (from < end && test(decodePart(name) ?? name)) return true;
    from = end + 1;
  }
  return false;
}

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

/** A name or an IPv4 address, or an IPv6 address in brackets, and a port: nothing that could end a quoted string. */
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/** The origin that a request was sent to, such as `https://example.com`; undefined without a well-formed host. */
export function publicOriginOf(req: IncomingMessage): string | undefined {
  const host = publicHostOf(req);
  return host === undefined || !HOST.test(host)
    ? undefined
    : `${publicSchemeOf(req, undefined) ?? 'http:'}//${host}`;
}

/** Returns undefined for plain HTTP without a trusted proxy: an unknown proxy may have terminated TLS. */
function publicSchemeOf(req: IncomingMessage, app: Settings | undefined): string | undefined {
  const scheme = forwarded(req, 'x-forwarded-proto', app)?.toLowerCase();
  // Some proxies send the scheme of the WebSocket; origins have that of the page.
  if (scheme !== undefined) return `${scheme.replace(/^ws(?=s?$)/, 'http')}:`;
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

export function createHostCheck(allowedHosts: readonly string[]): HostCheck {
  const hosts = new Set(allowedHosts.map((host) => host.toLowerCase()));
  return (req) => hosts.has((hostOf(req) ?? '').toLowerCase());
}
