import type { IncomingMessage } from 'node:http';

/** The host that a request was sent to, with the port unless it is the default; HTTP/2 sends it as `:authority`. */
export function hostOf({ headers }: IncomingMessage): string | undefined {
  return headers.host ?? (headers[':authority'] as string | undefined);
}

/** Whether an `Origin` is the origin that a request was sent to. */
export function isOwnOrigin(req: IncomingMessage, origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host } = new URL(origin);
  // The scheme is known only on a TLS socket: a proxy may have terminated TLS.
  if ('encrypted' in req.socket && protocol !== 'https:') return false;
  const own = `${protocol}//${hostOf(req)}`;
  return hostOf(req) !== undefined && URL.canParse(own) && new URL(own).host === host;
}
