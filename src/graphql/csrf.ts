import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Negotiated } from '../http/negotiation/accept.ts';
import { HttpError } from '../http/reply/http-error.ts';
import type { HttpSettings } from './options.ts';
import { GRAPHQL_TYPE, JSON_TYPE } from './request/media-types.ts';

/** Headers that a page of another origin can send only after the server agreed in a CORS preflight. */
const PREFLIGHT_HEADERS = [
  'graphql-require-preflight',
  'apollo-require-preflight',
  'graphql-preflight',
  'x-requested-with',
  'x-apollo-operation-name',
] as const;

/** Credentials that browsers add by themselves. */
const AMBIENT_SCHEME = /^\s*(?:basic|digest|negotiate|ntlm)\b/i;

/** Decides which requests a page of another site may have made. */
export interface Guard {
  /** @throws HttpError when a mutation may not run over this GET or HEAD. */
  mutation(req: IncomingMessage, accepted: Negotiated): void;
  /** @throws HttpError for a GET that reads with a cookie in a mode that hides the answer from the page that sent it. */
  read(req: IncomingMessage): void;
  /** @throws HttpError for a multipart body that a form of another site may have sent. */
  multipart(req: IncomingMessage): void;
  /** @throws HttpError for a Host that is not ours (DNS rebinding). */
  host(req: IncomingMessage): void;
}

type Options = Pick<
  HttpSettings,
  'getMutations' | 'trustedOrigins' | 'crossSiteReads' | 'allowedHosts' | 'methods'
>;

/** The guard of one handler. */
export function createGuard(options: Options): Guard {
  const trusted = new Set(options.trustedOrigins);
  const hosts = options.allowedHosts && new Set(options.allowedHosts.map((host) => host.toLowerCase()));
  const allow = options.methods.includes('POST') ? { allow: 'POST' } : { allow: '' };

  return {
    mutation(req, accepted) {
      const { getMutations } = options;
      if (req.method === 'HEAD') throw notByGet('A HEAD request never runs a mutation', allow);
      if (getMutations === false)
        throw notByGet('Mutations over GET are switched off (getMutations: false)', allow);
      if (getMutations === true) return;
      // A client that knows only the specification's own media type gets what that specification asks for.
      if (isStrict(accepted)) throw notByGet('Send mutations as POST', allow);
      const reason = foreignMutation(req, trusted);
      if (reason !== undefined)
        throw foreign(`A mutation over GET was refused: ${reason} (option getMutations)`);
    },
    read({ headers }) {
      if (options.crossSiteReads || headers['sec-fetch-site'] !== 'cross-site') return;
      const mode = headers['sec-fetch-mode'];
      if (headers.cookie !== undefined && (mode === 'no-cors' || mode === 'navigate')) {
        throw foreign('A request from a page of another site was refused (option crossSiteReads)');
      }
    },
    multipart(req) {
      if (!isPreflighted(req.headers) && !isOwnForm(req, trusted)) {
        throw foreign(
          'A multipart body from a page of another site was refused; send the header GraphQL-Require-Preflight',
        );
      }
    },
    host(req) {
      if (hosts !== undefined && !hosts.has((hostOf(req) ?? '').toLowerCase())) {
        throw new HttpError(421, 'This host is not served here (option allowedHosts)', {
          code: 'WRONG_HOST',
        });
      }
    },
  };
}

/** Why a mutation over GET may have come from somewhere else, or undefined. */
function foreignMutation(req: IncomingMessage, trusted: ReadonlySet<string>): string | undefined {
  const { headers } = req;
  const mode = headers['sec-fetch-mode'];
  const site = headers['sec-fetch-site'];
  const { origin } = headers;
  if (mode === 'navigate') return 'it is a navigation';
  if (site !== undefined) {
    if (site !== 'same-origin' && !(origin !== undefined && trusted.has(origin)))
      return `Sec-Fetch-Site is ${site}`;
    // Images, scripts and the like, of our own pages too: a user's content may hold them.
    if (headers['sec-fetch-dest'] !== 'empty') return 'it was not made by fetch';
    return mode === 'cors' || mode === 'same-origin' ? undefined : 'its mode hides the answer';
  }
  if (isPreflighted(headers)) return undefined;
  if (origin !== undefined) return isOwnOrigin(req, origin, trusted) ? undefined : `its Origin is ${origin}`;
  return browserSign(headers);
}

/** What shows an old browser, or one on plain http, that may send credentials along: those have neither header. */
function browserSign(headers: IncomingHttpHeaders): string | undefined {
  if (headers.cookie !== undefined) return 'it carries cookies';
  if (AMBIENT_SCHEME.test(headers.authorization ?? ''))
    return 'it carries credentials that browsers add by themselves';
  if (headers.referer !== undefined) return 'it carries a Referer';
  if (headers['user-agent']?.startsWith('Mozilla/')) return 'it comes from a browser';
  return undefined;
}

/** Fetch metadata, then Origin; what has neither is no browser that sends forms across sites today. */
function isOwnForm(req: IncomingMessage, trusted: ReadonlySet<string>): boolean {
  const { origin } = req.headers;
  const site = req.headers['sec-fetch-site'];
  if (site !== undefined) {
    return site === 'same-origin' || site === 'none' || (origin !== undefined && trusted.has(origin));
  }
  return origin === undefined || isOwnOrigin(req, origin, trusted);
}

function isOwnOrigin(req: IncomingMessage, origin: string, trusted: ReadonlySet<string>): boolean {
  if (trusted.has(origin)) return true;
  if (!URL.canParse(origin)) return false;
  const { protocol, host } = new URL(origin);
  // Behind a proxy the scheme is not known here; on a TLS socket it is.
  if ('encrypted' in req.socket && protocol !== 'https:') return false;
  const own = hostOf(req);
  return (
    own !== undefined && URL.canParse(`${protocol}//${own}`) && new URL(`${protocol}//${own}`).host === host
  );
}

function hostOf({ headers }: IncomingMessage): string | undefined {
  return headers.host ?? (headers[':authority'] as string | undefined);
}

const isPreflighted = (headers: IncomingHttpHeaders): boolean =>
  PREFLIGHT_HEADERS.some((name) => headers[name] !== undefined && headers[name] !== '');

const isStrict = ({ explicit, acceptable }: Negotiated): boolean =>
  explicit && acceptable.includes(GRAPHQL_TYPE) && !acceptable.includes(JSON_TYPE);

const notByGet = (message: string, headers: { allow: string }): HttpError =>
  new HttpError(405, message, { headers, code: 'MUTATION_OVER_GET' });

const foreign = (message: string): HttpError => new HttpError(403, message, { code: 'CROSS_SITE' });
