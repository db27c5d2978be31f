import { isIPv6 } from 'node:net';
import type { Caller } from '../../types/caller.ts';
import type { ContextSource } from '../../types/connect.ts';

/** The members of a request that have the address of a client. */
interface Source extends Pick<ContextSource, 'socket'> {
  /** Set by Express, which knows its trusted proxies. */
  readonly ip?: unknown;
}

/** The addresses of WebSockets, whose upgrade requests are not kept. */
const addresses = new WeakMap<object, string>();

export function rememberAddress(websocket: object, request: object): void {
  addresses.set(websocket, clientAddress(request));
}

/** The key of a client: its caller, otherwise its address. No address begins with a word. */
export const clientKey = (source: unknown, caller: Caller | null | undefined): string =>
  caller ? `caller ${caller.id}` : clientAddress(source);

/**
 * Returns the address of a client. One client often has all addresses of an IPv6 network of 64 bits, so they
 * count as one.
 */
export function clientAddress(source: unknown): string {
  const known = addresses.get(source as object);
  if (known !== undefined) return known;
  const { ip, socket } = source as Source;
  const address = typeof ip === 'string' ? ip : socket?.remoteAddress;
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
