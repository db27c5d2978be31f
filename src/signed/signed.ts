import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { ConnectRequest } from '../../types/connect.ts';
import type { SignedOptions, SignUrlOptions } from '../../types/static.ts';
import { addressOf } from '../http/address.ts';
import { CDN_LIFETIMES } from '../http/reply.ts';
import {
  duration,
  type OptionScope,
  resolveOptions,
  rule,
  unchecked,
  wrongArgument,
} from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { secretsOf } from '../options/secrets.ts';
import { isString } from '../options/values.ts';
import { encodePath, parseRequestPath, requestedPath } from '../static/path.ts';
import { type LifetimeHeaders, sendStatus } from '../static/request.ts';

// The signature covers the time of the expiry, the address, and the decoded path that the client asks for: every
// percent-encoding of a path is the same path, and the same path below another mount is another one.

const seconds = (): number => Math.floor(Date.now() / 1000);

/** Signatures with the keys of links: the same secret may sign other things. */
const keysOf = (scope: OptionScope, name: string, given: unknown): readonly KeyObject[] =>
  secretsOf(scope, name, given).map((secret) =>
    createSecretKey(createHmac('sha256', secret).update('espalier signed link').digest()),
  );

const signatureOf = (key: KeyObject, [expires, ip, path]: readonly string[]): Buffer =>
  createHmac('sha256', key).update(`${expires}\n${ip}\n${path}`).digest();

const SCOPE: OptionScope = { name: 'signUrl', page: 'user-files', example: "{ keys, expiresIn: '5m' }" };
const ACCEPTED_PATH = 'a path as in "/originals/my picture.jpg", without percent-encoding or dot segments';
const ACCEPTED_OPTIONS = "an object with expiresIn, such as { keys, expiresIn: '5m' }";
const RULES = {
  keys: unchecked,
  expiresIn: duration(0),
  ip: rule<string | undefined>(undefined, isString, 'the address of a client'),
};

/**
 * Signs a link to a file that a `staticFiles` with the option `signed` serves. Returns the path with an expiry and a
 * signature.
 *
 * @param path - the whole path with that of the mount, without percent-encoding: `/originals/my picture.jpg`
 * @throws TypeError (code `ERR_OPTION`) for a path that no request can have, an unknown option or a wrong value
 * @example
 * const url = signUrl(`/originals/${name}`, { keys, expiresIn: '5m' });
 */
export function signUrl(path: string, given: SignUrlOptions): string {
  const options = resolveOptions(SCOPE, given, RULES);
  // A surrogate without its pair becomes U+FFFD, as in URLs.
  const url = isString(path) ? encodePath(Buffer.from(path).toString()) : '';
  const parsed = parseRequestPath(url, { rejectWindowsNames: false });
  if (parsed.kind === 'refused') throw wrongArgument(SCOPE, 'path', path, ACCEPTED_PATH);
  if (options.expiresIn === 0) throw wrongArgument(SCOPE, 'options', given, ACCEPTED_OPTIONS);
  const [key] = keysOf(SCOPE, 'keys', options.keys);
  // Rounded up: browsers keep the file of a link only as long as the link is the same.
  const step = Math.max(1, Math.floor(options.expiresIn / 10_000));
  const expires = String(Math.ceil((Date.now() + options.expiresIn) / 1000 / step) * step);
  const signature = signatureOf(key as KeyObject, [expires, options.ip ?? '', parsed.path]);
  return `${url}?expires=${expires}&signature=${signature.toString('base64url')}`;
}

/** Checks the option `signed` of `staticFiles`, and returns its keys. */
export function resolveSigned(given: SignedOptions | undefined): readonly KeyObject[] | undefined {
  if (given === undefined) return undefined;
  const within = { ...STATIC_OPTIONS, page: SCOPE.page, within: 'signed' };
  const { keys } = resolveOptions<{ keys: unknown }>(within, given, { keys: unchecked });
  return keysOf(within, 'signed.keys', keys);
}

/** Whether a request has a valid link. Otherwise this function has responded with 403. */
export function checkLink(req: ConnectRequest, res: ServerResponse, keys: readonly KeyObject[]): boolean {
  const { expires, signature } = linkOf(req);
  // A link for all addresses has an empty one.
  const inputs = ['', addressOf(req) ?? ''].map((ip) => [expires, ip, requestedPath(req)]);
  const isSigned =
    signature.length === 32 &&
    keys
      .flatMap((key) => inputs.map((input) => timingSafeEqual(signature, signatureOf(key, input))))
      .includes(true);
  if (isSigned && Number(expires) > seconds()) return true;
  const text = isSigned ? 'The link has expired' : 'The link is not signed';
  sendStatus({ req, res }, 403, { 'Cache-Control': 'no-store' }, text);
  return false;
}

function linkOf({ url = '', originalUrl = url }: ConnectRequest): { expires: string; signature: Buffer } {
  const query = new URLSearchParams(/\?.*/s.exec(originalUrl)?.[0]);
  const expires = query.get('expires') ?? '';
  return {
    expires: /^\d{1,12}$/.test(expires) ? expires : '',
    signature: Buffer.from(query.get('signature') ?? '', 'base64url'),
  };
}

/** Lets no cache keep a file longer than its link is valid, and none keep it for others. */
export function limitLifetime(
  req: ConnectRequest,
  res: ServerResponse,
  { cacheControl, added = [] }: LifetimeHeaders,
): void {
  const value = String(res.getHeader('Cache-Control') ?? cacheControl ?? 'max-age=0');
  for (const name of ['Expires', ...CDN_LIFETIMES]) res.removeHeader(name);
  // What a rule adds to the file stays out if the response has the header.
  for (const name of CDN_LIFETIMES)
    if (added.some((text) => text.toLowerCase() === name.toLowerCase())) res.setHeader(name, 'no-store');
  if (/\bno-(?:store|cache)\b/i.test(value)) return;
  const given = Number(/\bmax-age="?(\d+)/i.exec(value)?.[1] ?? 0);
  const left = Math.max(0, Number(linkOf(req).expires) - seconds());
  res.setHeader('Cache-Control', `private, max-age=${Math.min(given, left)}, must-revalidate`);
}
