import { isIPv6 } from 'node:net';
import type { Caller } from '../../types/caller.ts';
import type { ContextSource } from '../../types/connect.ts';
import { isString } from '../options/values.ts';

/** The members of a request that have the address of a client. */
interface Source extends Pick<ContextSource, 'socket'> {
  /** Set by Express, which knows its trusted proxies; of a WebSocket that of its upgrade request. */
  readonly ip?: unknown;
}

/** The address as Express or the connection has it. */
export function ipOf({ ip, socket }: Source): string | undefined {
  return isString(ip) ? ip : socket?.remoteAddress;
}

/** The same, in which an IPv4 address is never written as one of IPv6. Undefined after the connection was closed. */
export const addressOf = (source: Source): string | undefined =>
  ipOf(source)?.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '');

/** The key of a client: its caller, otherwise its address. No address begins with a word. */
export const clientKey = (source: unknown, caller: Caller | null | undefined): string =>
  caller ? `caller ${caller.id}` : clientAddress(source);

/**
 * Returns the address of a client. One client often has all addresses of an IPv6 network of 64 bits, so they
 * count as one.
 */
export function clientAddress(source: unknown): string {
  const address = addressOf(source as Source);
  if (address === undefined) return 'unknown';
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
