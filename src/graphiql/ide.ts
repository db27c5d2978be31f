import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { ConnectRequest, MaybePromise, NextFunction } from '../../types/connect.ts';
import type { GraphiQLOption } from '../../types/graphiql.ts';
import { createNegotiator } from '../http/negotiation/accept.ts';
import { addVary } from '../http/negotiation/vary.ts';
import type { Headers } from '../http/reply/http-error.ts';
import { type Reply, writeReply } from '../http/reply/write-reply.ts';
import { takesBelow } from '../http/routing/express-route.ts';
import { pathOf } from '../http/routing/url-path.ts';
import { formatValue } from '../options/format-value.ts';
import { optionError } from '../options/resolve-options.ts';
import { GRAPHIQL_OPTIONS } from '../options/scopes.ts';
import { type IdeFiles, loadFiles } from './assets.ts';
import { exactRouteReply } from './exact.ts';
import { type IdeSettings, resolveGraphiQLOptions } from './options.ts';
import { FILES, filesBase, pageRenderer } from './page.ts';

/** The IDE of one endpoint. */
export interface Ide {
  /**
   * Answers a GET or HEAD for the page, or for one of its files `below` the mount: resolves to true when it did, to false
   * when the gate said no. Undefined at once for any other request. Rejects when the gate throws or gives wrong options,
   * or when the files cannot be read.
   */
  answer(req: ConnectRequest, res: ServerResponse, to: Way): Promise<boolean> | undefined;
}

/** Where a request was made, and where faults go. */
export interface Way {
  readonly below: boolean;
  /** On a route of Express, not on a mount. */
  readonly routed: boolean;
  readonly next: NextFunction;
}

type Renderer = ReturnType<typeof pageRenderer>;
type Gate = (req: ConnectRequest, res: ServerResponse) => MaybePromise<IdeSettings | undefined>;

/** The IDE that the option `graphiql` asks for; undefined for `false`. */
export function createIde(option: GraphiQLOption): Ide | undefined {
  if (option === false) return undefined;
  const gate = createGate(option);
  const files = createLoader(typeof option === 'function' ? 'private' : 'public');
  const renderers = new WeakMap<IdeSettings, Renderer>();
  const negotiate = createNegotiator(['application/json', 'application/graphql-response+json', 'text/html']);

  async function answerPage(req: ConnectRequest, res: ServerResponse, routed: boolean): Promise<boolean> {
    const settings = await gate(req, res);
    if (settings === undefined) return false;
    // By a middleware in front, or by the gate itself.
    if (res.headersSent) return true;
    addVary(res, 'Accept');
    const path = pathOf(req.originalUrl ?? req.url);
    const isCutOff = routed && !takesBelow(req, `${FILES}/file.js`);
    const reply = isCutOff ? exactRouteReply(path) : await pageReply(settings, path);
    writeReply(res, reply, req.method === 'HEAD');
    return true;
  }

  async function pageReply(settings: IdeSettings, path: string): Promise<Reply> {
    const render = await rendererFor(settings);
    const nonce = randomBytes(16).toString('base64');
    return { status: 200, headers: pageHeaders(settings, nonce), body: render(filesBase(path), nonce) };
  }

  async function rendererFor(settings: IdeSettings): Promise<Renderer> {
    const known = renderers.get(settings);
    if (known !== undefined) return known;
    const render = pageRenderer(settings, (await files()).page);
    renderers.set(settings, render);
    return render;
  }

  async function answerFile(req: ConnectRequest, res: ServerResponse, name: string, next: NextFunction) {
    const allowed = (await gate(req, res)) !== undefined;
    const { site } = await files();
    // As under a mount: the rest of the path is what the site is asked for.
    req.originalUrl ??= req.url ?? '/';
    req.url = allowed ? `/${name}` : '/';
    site(req, res, next);
    return true;
  }

  return {
    answer(req, res, { below, routed, next }) {
      req.state ??= {};
      const { url = '/', headers } = req;
      const file = fileOf(url);
      if (file !== undefined) return answerFile(req, res, file, next);
      if (below || negotiate(headers.accept).type !== 'text/html') return undefined;
      // `?raw` asks for JSON in a browser, as it did in express-graphql.
      return /[?&]raw(?:[=&]|$)/.test(url) ? undefined : answerPage(req, res, routed);
    },
  };
}

/** Options are settled when the middleware is made; those that a gate returns, for each page. */
function createGate(option: Exclude<GraphiQLOption, false>): Gate {
  if (typeof option !== 'function') {
    const settings = resolveGraphiQLOptions(option === true ? {} : option);
    return () => settings;
  }
  const defaults = resolveGraphiQLOptions({});
  return async (req, res) => {
    const decision: unknown = await option(req, res);
    if (typeof decision === 'boolean') return decision ? defaults : undefined;
    if (typeof decision === 'object' && decision !== null) return resolveGraphiQLOptions(decision);
    throw optionError(
      GRAPHIQL_OPTIONS,
      `option "graphiql" returned ${formatValue(decision)}; accepted: a boolean, or options`,
    );
  };
}

/** The files are looked for on the first visit: an API that nobody browses reads nothing. */
function createLoader(scope: 'public' | 'private'): () => Promise<IdeFiles> {
  let loading: Promise<IdeFiles> | undefined;
  return () => {
    loading ??= loadFiles(scope).catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}

function pageHeaders({ policy }: IdeSettings, nonce: string): Headers {
  const headers: Headers = {
    'content-type': 'text/html; charset=utf-8',
    // The nonce is for this response alone.
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    // The page's URL may hold an operation.
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'x-robots-tag': 'noindex',
  };
  if (policy !== undefined) headers['content-security-policy'] = policy(nonce);
  return headers;
}

function fileOf(url: string): string | undefined {
  const at = url.indexOf(`/${FILES}/`);
  if (at === -1 || url.lastIndexOf('?', at) !== -1) return undefined;
  return pathOf(url.slice(at + FILES.length + 2));
}
