import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { debug, isDevelopment, noteHidden } from '../diagnostics/logging.ts';
import { createNegotiator, GRAPHQL_TYPE, JSON_TYPE, type Negotiated } from '../http/negotiation.ts';
import { HttpError } from '../http/reply.ts';
import { isOwnOrigin, publicHostOf } from '../http/routing.ts';
import type { HttpSettings } from './options.ts';

/** Headers that a page of another origin can send only after a successful CORS preflight. */
const PREFLIGHT_HEADERS = [
  'graphql-require-preflight',
  'apollo-require-preflight',
  'graphql-preflight',
  'x-requested-with',
  'x-apollo-operation-name',
] as const;

/** Credentials that browsers add without a script. */
const AMBIENT_SCHEME = /^\s*(?:basic|digest|negotiate|ntlm)\b/i;

/** The checks against cross-site request forgery. */
export interface Csrf {
  /** @throws HttpError for a GET, HEAD or QUERY that must not run a mutation. */
  assertMutation(req: IncomingMessage, accepted: Negotiated): void;
  /**
   * @throws HttpError for a cross-site GET with credentials whose response the page that sent it cannot read: it could
   * measure the time.
   */
  assertRead(req: IncomingMessage, res: ServerResponse): void;
  /** @throws HttpError for a multipart body that a cross-site form may have sent. */
  assertMultipart(req: IncomingMessage): void;
}

type Options = Pick<HttpSettings, 'getMutations' | 'allowedOrigins' | 'methods'>;

export function createCsrf(options: Options): Csrf {
  const trusted = new Set(options.allowedOrigins);
  const allow = options.methods.includes('POST') ? { allow: 'POST' } : { allow: '' };

  /**
   * Creates the 403 error. The compared values are in the response only in development, and always in the
   * debug log.
   */
  function crossSite(req: IncomingMessage, message: string, option?: string): HttpError {
    const { origin } = req.headers;
    const compared =
      origin === undefined ? '' : `; its Origin ${origin} was compared with the host ${publicHostOf(req)}`;
    const full = `${message}${compared}${option === undefined ? '' : ` (option "${option}")`}`;
    debug.graphql('%s %s: %s', req.method, req.url, full);
    if (origin !== undefined) noteHidden('cross-site', full);
    return new HttpError(403, isDevelopment() ? full : message, { code: 'CROSS_SITE' });
  }

  const methodRefusal = (message: string): HttpError =>
    new HttpError(405, message, { headers: allow, code: 'MUTATION_OVER_GET' });

  return {
    assertMutation(req, accepted) {
      const { getMutations } = options;
      // The option is about GET: clients and proxies may repeat a QUERY (RFC 10008 §2).
      if (req.method === 'QUERY') {
        throw new HttpError(422, 'A QUERY request cannot run a mutation; send it as POST', {
          code: 'MUTATION_OVER_QUERY',
        });
      }
      if (req.method === 'HEAD') throw methodRefusal('A HEAD request cannot run a mutation; send it as POST');
      if (getMutations === false) {
        throw methodRefusal(
          'Mutations over GET are disabled; send the mutation as POST (option "getMutations")',
        );
      }
      if (getMutations === true) return;
      // A client that accepts only the media type of GraphQL over HTTP gets the behaviour of that
      // specification.
      if (onlyAcceptsGraphQLResponse(accepted)) {
        throw methodRefusal('A GET request cannot run a mutation; send it as POST');
      }
      const reason = crossSiteReason(req, accepted, trusted);
      if (reason !== undefined) {
        const message = `The mutation over GET may come from another site: ${reason}; send it as POST`;
        throw crossSite(req, message, 'getMutations');
      }
    },
    assertRead(req, res) {
      const { cookie, authorization, origin } = req.headers;
      if ((cookie === undefined && authorization === undefined) || !isFromAnotherSite(req)) return;
      if (isPreflighted(req) || isReadable(res, origin)) return;
      if (origin !== undefined && trusted.has(origin)) return;
      throw crossSite(req, CROSS_SITE_READ, 'allowedOrigins');
    },
    assertMultipart(req) {
      if (hasPreflightHeader(req.headers) || isSameSiteForm(req, trusted)) return;
      const message =
        'The multipart request may come from a form of another site; send the header GraphQL-Require-Preflight, or allow the origin';
      throw crossSite(req, message, 'allowedOrigins');
    },
  };
}

/** Returns why a mutation over GET may come from another site; undefined if it cannot. */
function crossSiteReason(
  req: IncomingMessage,
  accepted: Negotiated,
  trusted: ReadonlySet<string>,
): string | undefined {
  const { headers } = req;
  const mode = headers['sec-fetch-mode'];
  const site = headers['sec-fetch-site'];
  const { origin } = headers;
  if (mode === 'navigate') return 'it is a navigation';
  if (site !== undefined) {
    if (site !== 'same-origin' && !(origin !== undefined && trusted.has(origin))) {
      return `Sec-Fetch-Site is ${site}`;
    }
    // Applies to our own pages too: content of users may contain images, scripts and other elements that send
    // a GET.
    if (headers['sec-fetch-dest'] !== 'empty') return 'it was not sent by fetch()';
    if (mode !== 'cors' && mode !== 'same-origin') return 'its mode hides the response';
    // A service worker that forwards the request of such an element turns it into a fetch, but keeps its
    // Accept header.
    if (acceptsOnlyJson(accepted) || hasPreflightHeader(headers)) return undefined;
    return 'it sends neither "Accept: application/json" nor the header GraphQL-Require-Preflight';
  }
  if (hasPreflightHeader(headers)) return undefined;
  if (origin === undefined) return browserSignal(headers);
  return trusted.has(origin) || isOwnOrigin(req, origin) ? undefined : 'its Origin is another one';
}

/** Detects a browser without Fetch metadata (an old version, or plain HTTP), or a link previewer. */
function browserSignal(headers: IncomingHttpHeaders): string | undefined {
  if (headers.cookie !== undefined) return 'it carries cookies';
  if (AMBIENT_SCHEME.test(headers.authorization ?? '')) {
    return 'it carries credentials that browsers add automatically';
  }
  if (headers.referer !== undefined) return 'it carries a Referer';
  if (headers['user-agent']?.startsWith('Mozilla/')) return 'it comes from a browser';
  return linkFollowerSignal(headers);
}

/** Checks Fetch metadata, then `Origin`. Every browser that still posts cross-site forms sends one of them. */
function isSameSiteForm(req: IncomingMessage, trusted: ReadonlySet<string>): boolean {
  const { origin } = req.headers;
  const site = req.headers['sec-fetch-site'];
  if (site !== undefined) {
    return site === 'same-origin' || site === 'none' || (origin !== undefined && trusted.has(origin));
  }
  return origin === undefined || trusted.has(origin) || isOwnOrigin(req, origin);
}

const CROSS_SITE_READ =
  'The request was refused: it comes from a page of another site, which cannot read the response; allow its origin in the package cors, mounted before graphqlHTTP';

/** Whether a page of another site has sent a GET. Without Fetch metadata only a request in mode `cors` tells its origin. */
function isFromAnotherSite(req: IncomingMessage): boolean {
  const { origin, 'sec-fetch-site': site } = req.headers;
  return site === undefined ? origin !== undefined && !isOwnOrigin(req, origin) : site === 'cross-site';
}

/**
 * Whether browsers ask for the permission to send the request before: those with credentials of the page, or JSON. A request
 * that hides its response from the page is none.
 */
const isPreflighted = ({ method, headers }: IncomingMessage): boolean =>
  headers['sec-fetch-mode'] !== 'no-cors' &&
  (method === 'QUERY' ||
    hasPreflightHeader(headers) ||
    headers['content-type'] !== undefined ||
    !AMBIENT_SCHEME.test(headers.authorization ?? 'basic'));

/** Whether CORS middleware has allowed a page to read a response to a request with credentials. */
const isReadable = (res: ServerResponse, origin: string | undefined): boolean =>
  origin !== undefined &&
  res.getHeader('access-control-allow-origin') === origin &&
  res.getHeader('access-control-allow-credentials') === 'true';

const hasPreflightHeader = (headers: IncomingHttpHeaders): boolean =>
  PREFLIGHT_HEADERS.some((name) => headers[name] !== undefined && headers[name] !== '');

/** Whether the header `Accept` lists JSON and no wildcard. No element of a page can send that. */
const acceptsOnlyJson = ({ explicit, acceptable }: Negotiated): boolean =>
  explicit && acceptable.includes(JSON_TYPE);

const onlyAcceptsGraphQLResponse = ({ explicit, acceptable }: Negotiated): boolean =>
  explicit && acceptable.includes(GRAPHQL_TYPE) && !acceptable.includes(JSON_TYPE);

/** Programs that follow links in messages and pages: previewers of chats and mail, crawlers of search engines. */
const LINK_FOLLOWER =
  /bot\b|bot[/-]|crawl|spider|preview|facebookexternalhit|facebookcatalog|meta-externalagent|whatsapp|slack|twitter|discord|telegram|linkedin|skype|pinterest|embedly|vkshare|quora link|iframely|mastodon|archive\.org/i;

const negotiate = createNegotiator([
  JSON_TYPE,
  GRAPHQL_TYPE,
  'text/html',
  'application/xhtml+xml',
  'image/png',
  'image/webp',
  'image/avif',
]);

/** Returns why a GET may come from a program that follows links; undefined for any other client. */
function linkFollowerSignal({ accept, 'user-agent': agent }: IncomingHttpHeaders): string | undefined {
  if (agent !== undefined && LINK_FOLLOWER.test(agent))
    return 'its User-Agent is that of a link previewer or crawler';
  const { type } = negotiate(accept);
  if (type === undefined || type === JSON_TYPE || type === GRAPHQL_TYPE) return undefined;
  return 'its Accept header prefers a page or an image';
}
