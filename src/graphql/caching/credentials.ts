import type { ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { ConnectRequest } from '../../../types/connect.ts';

/** Members that authentication and session middleware add to requests. */
const USER_MEMBERS = ['user', 'auth', 'session', 'sessionID'];

/** Headers of API keys, tokens, and proxies that authenticate the user; not HTTP/2's `:authority`. */
const CREDENTIAL_NAME =
  /^(?!:).*(?:token|api-?key|auth|session|jwt|(?<!^sec-fetch-)user(?!-agent)|email|principal|identity)/;

const CREDENTIAL_HEADERS = new Set(['authorization', 'cookie']);
const OTHER_HEADERS = new Set<string>();
/** Clients choose the names of headers, so few are stored. */
const MAX_NAMES = 500;

/**
 * Whether a response may depend on the user that sent the request. Without a key that separates users it must
 * not be stored by shared caches, also if the schema declares it public.
 */
export function hasCredentials(req: ConnectRequest, res: ServerResponse): boolean {
  for (const name in req.headers) if (isCredential(name)) return true;
  if (USER_MEMBERS.some((member) => member in req)) return true;
  // A client certificate.
  if ((req.socket as Partial<TLSSocket>).authorized === true) return true;
  return res.hasHeader('set-cookie');
}

function isCredential(name: string): boolean {
  if (CREDENTIAL_HEADERS.has(name)) return true;
  if (OTHER_HEADERS.has(name)) return false;
  if (CREDENTIAL_NAME.test(name)) return true;
  if (OTHER_HEADERS.size < MAX_NAMES) OTHER_HEADERS.add(name);
  return false;
}
