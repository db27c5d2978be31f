import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { ConnectRequest, MaybePromise } from '../../types/connect.ts';
import type { GraphiQLOption } from '../../types/graphiql.ts';
import { createNegotiator } from '../http/negotiation.ts';
import { addVary, type Headers, NO_STORE, type Reply, writeReply } from '../http/reply.ts';
import { pathOf, withoutSlash } from '../http/routing.ts';
import { formatValue, optionError } from '../options/rules.ts';
import { GRAPHIQL_OPTIONS } from '../options/scopes.ts';
import { getOrCreate } from '../options/values.ts';
import { type GraphiQLSettings, resolveGraphiQLOptions } from './options.ts';
import { escapeHtml, FILES, filesBase, loadAssets, pageRenderer } from './page.ts';

interface GraphiQLHandler {
  /**
   * Handles a GET or HEAD request for the page or for one of its files below the mount. Resolves to true
   * after a response, to false if the option `graphiql` is off for this request. Returns undefined for any
   * other request. Rejects when the function of the option throws or returns wrong options, or when the files
   * cannot be read.
   */
  handle(req: ConnectRequest, res: ServerResponse, placement: Placement): Promise<boolean> | undefined;
}

/** The position of a request relative to the handler's mount or route. */
interface Placement {
  /** The path is below the mount. */
  readonly below: boolean;
  /** The handler is on an exact route of Express, not on a mount. */
  readonly routed: boolean;
}

type Renderer = ReturnType<typeof pageRenderer>;
type IsEnabled = (req: ConnectRequest, res: ServerResponse) => MaybePromise<GraphiQLSettings | undefined>;

/** Creates GraphiQL for the option `graphiql`; undefined for `false`. */
export function createGraphiQL(option: GraphiQLOption): GraphiQLHandler | undefined {
  if (option === false) return undefined;
  const isEnabled = createIsEnabled(option);
  const assets = loadAssets(typeof option === 'function' ? 'private' : 'public');
  const renderers = new WeakMap<GraphiQLSettings, Renderer>();
  const negotiate = createNegotiator(['application/json', 'application/graphql-response+json', 'text/html']);

  async function sendPage(req: ConnectRequest, res: ServerResponse, { routed }: Placement): Promise<boolean> {
    const settings = await isEnabled(req, res);
    if (settings === undefined) return false;
    // Earlier middleware or the function of the option may have sent a response.
    if (res.headersSent) return true;
    addVary(res, 'Accept');
    const path = pathOf(req.originalUrl ?? req.url);
    const filesUnreachable = routed && !matchesBelow(req, `${FILES}/file.js`);
    const reply = filesUnreachable ? exactRouteError(path) : pageReply(settings, path);
    writeReply(req, res, reply);
    return true;
  }

  function pageReply(settings: GraphiQLSettings, path: string): Reply {
    const render = getOrCreate(renderers, settings, () => pageRenderer(settings, assets().page));
    const nonce = randomBytes(16).toString('base64');
    return { status: 200, headers: pageHeaders(settings, nonce), body: render(filesBase(path), nonce) };
  }

  async function sendFile(req: ConnectRequest, res: ServerResponse, name: string) {
    const allowed = (await isEnabled(req, res)) !== undefined;
    await assets().send(req, res, allowed ? name : undefined);
    return true;
  }

  return {
    handle(req, res, placement) {
      const { url = '/', headers } = req;
      const file = fileOf(url);
      if (file !== undefined) return sendFile(req, res, file);
      if (placement.below || negotiate(headers.accept).type !== 'text/html') return undefined;
      // In a browser `?raw` requests JSON, as in express-graphql.
      return /[?&]raw(?:[=&]|$)/.test(url) ? undefined : sendPage(req, res, placement);
    },
  };
}

/** Options are checked when the handler is created; options that a function returns are checked for each page. */
function createIsEnabled(option: Exclude<GraphiQLOption, false>): IsEnabled {
  if (typeof option !== 'function') {
    const settings = resolveGraphiQLOptions(option === true ? {} : option);
    return () => settings;
  }
  const defaults = resolveGraphiQLOptions({});
  return async (req, res) => {
    req.state ??= {};
    const decision: unknown = await option(req, res);
    if (typeof decision === 'boolean') return decision ? defaults : undefined;
    if (typeof decision === 'object' && decision !== null) return resolveGraphiQLOptions(decision);
    throw optionError(
      GRAPHIQL_OPTIONS,
      `option "graphiql" returned ${formatValue(decision)}; accepted: a boolean, or an object of options`,
    );
  };
}

function pageHeaders(settings: GraphiQLSettings, nonce: string): Headers {
  return {
    'content-type': 'text/html; charset=utf-8',
    // The nonce is valid for this response only.
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    // The URL of the page may contain an operation.
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'x-robots-tag': 'noindex',
    'content-security-policy': settings.policy(nonce),
  };
}

function fileOf(url: string): string | undefined {
  const at = url.indexOf(`/${FILES}/`);
  if (at === -1 || url.lastIndexOf('?', at) !== -1) return undefined;
  return pathOf(url.slice(at + FILES.length + 2));
}

/**
 * Creates a page that explains why GraphiQL cannot load on this route. The status is 500: the application has
 * to be changed.
 */
function exactRouteError(path: string): Reply {
  const code = (text: string): string => `<code>${escapeHtml(text)}</code>`;
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>GraphiQL cannot run on an exact route</title>
<h1>GraphiQL cannot run on an exact route</h1>
<p>The files of the page are at ${code(`${path}/${FILES}/\u2026`)}, which an exact route does not match.</p>
<p>Mount the handler with ${code(`app.use('${path}', graphqlHTTP(schema))`)}, or switch GraphiQL off with ${code('graphiql: false')}.</p>
<p>The GraphQL API works on this route.</p>
</html>
`;
  const policy = "default-src 'none'; frame-ancestors 'none'";
  const headers = {
    ...NO_STORE,
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy,
  };
  return { status: 500, headers, body };
}

/** Whether the route of a request also matches a file below the path of the request. */
function matchesBelow(req: ConnectRequest, file: string): boolean {
  const below = `${withoutSlash(pathOf(req.url))}/${file}`;
  return [(req.route as { readonly path?: unknown }).path]
    .flat()
    .some((pattern) => (pattern instanceof RegExp ? pattern.test(below) : String(pattern).includes('*')));
}
