import type { IncomingMessage } from 'node:http';
import { hostOf } from './own-origin.ts';

/** Whether the host of a request is allowed. */
export type HostCheck = (req: IncomingMessage) => boolean;

/** Creates the check of the option `allowedHosts`; undefined allows every host. */
export function createHostCheck(allowedHosts: readonly string[] | undefined): HostCheck {
  if (allowedHosts === undefined) return () => true;
  const hosts = new Set(allowedHosts.map((host) => host.toLowerCase()));
  return (req) => hosts.has((hostOf(req) ?? '').toLowerCase());
}
