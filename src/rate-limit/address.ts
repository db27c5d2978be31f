import { isIPv6 } from 'node:net';
import type { ContextSource } from '../../types/connect.ts';

/** The members of a request or WebSocket that have the address of a client. */
interface Source extends Pick<ContextSource, 'socket'> {
  /** Set by Express, which knows its trusted proxies. */
  readonly ip?: unknown;
  /** The upgrade request of a WebSocket. */
  readonly request?: { readonly ip?: unknown } | undefined;
}

/**
 * Returns the address of a client. One client often has all addresses of an IPv6 network of 64 bits, so they
 * count as one.
 */
export function clientAddress(source: unknown): string {
  const { ip, request, socket } = source as Source;
  const address = [ip, request?.ip, socket?.remoteAddress].find((value) => typeof value === 'string');
  if (typeof address !== 'string') return 'unknown';
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  return isIPv6(address) ? `${networkOf(address)}::/64` : address;
}

/** The first four groups of an IPv6 address. */
function networkOf(address: string): string {
  const [before = '', after] = address.split('%')[0]?.split('::') ?? [];
  const first = before === '' ? [] : before.split(':');
  const last = after === undefined || after === '' ? [] : after.split(':');
  const zeros =
    after === undefined ? [] : new Array<string>(Math.max(0, 8 - first.length - last.length)).fill('0');
  return [...first, ...zeros, ...last]
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, '').toLowerCase())
    .join(':');
}
