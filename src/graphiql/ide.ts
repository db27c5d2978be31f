import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { ConnectRequest, MaybePromise } from '../../types/connect.ts';
import type { GraphiQLOption } from '../../types/graphiql.ts';
import { createNegotiator } from '../http/accept.ts';
import type { Headers } from '../http/error.ts';
import type { Reply } from '../http/reply.ts';
import { optionError, show } from '../options/settle.ts';
import { type Assets, loadAssets } from './assets.ts';
import { exactRouteReply, isExactRoute } from './exact.ts';
import { type IdeSettings, settleGraphiQL } from './options.ts';
import { FILES, filesBase, pageRenderer } from './page.ts';

/** The IDE of one endpoint. */
export interface Ide {
  /**
   * What answers a GET or HEAD for the page, or for one of its files `below` the mount; undefined for any other request.
   * Rejects when the gate throws, gives wrong options, or the files cannot be read.
   */
  reply(req: ConnectRequest, res: ServerResponse, below: boolean): Promise<Reply | undefined> | undefined;
}

type Renderer = ReturnType<typeof pageRenderer>;
type Gate = (req: ConnectRequest, res: ServerResponse) => MaybePromise<IdeSettings | undefined>;

/** The IDE that the option `graphiql` asks for; undefined for `false`. */
export function createIde(option: GraphiQLOption): Ide | undefined {
  if (option === false) return undefined;
  const gate = createGate(option);
  const gated = typeof option === 'function';
  const assets = createLoader();
  const renderers = new WeakMap<IdeSettings, Renderer>();
  const negotiate = createNegotiator(['application/json', 'application/graphql-response+json', 'text/html']);

  async function answer(req: ConnectRequest, res: ServerResponse, file: string | undefined) {
    req.state ??= {};
    const settings = await gate(req, res);
    if (settings === undefined) return file === undefined ? undefined : NOT_THERE;
    if (file !== undefined) return fileReply(await assets(), file, req, gated);
    const path = pathOf(req.originalUrl ?? req.url);
    if (isExactRoute(req)) return exactRouteReply(path);
    let render = renderers.get(settings);
    if (render === undefined) {
      render = pageRenderer(settings, (await assets()).page);
      renderers.set(settings, render);
    }
    const nonce = randomBytes(16).toString('base64');
    return { status: 200, headers: pageHeaders(settings, nonce, res), body: render(filesBase(path), nonce) };
  }

  return {
    reply(req, res, below) {
      const { url = '/', headers } = req;
      const file = fileOf(url);
      if (file === undefined) {
        if (below || negotiate(headers.accept).type !== 'text/html') return undefined;
        // `?raw` asks for JSON in a browser, as it did in express-graphql.
        if (/[?&]raw(?:[=&]|$)/.test(url)) return undefined;
      }
      return answer(req, res, file);
    },
  };
}

/** Options are settled when the middleware is made; those that a gate returns, for each page. */
function createGate(option: Exclude<GraphiQLOption, false>): Gate {
  if (typeof option !== 'function') {
    const settings = settleGraphiQL(option === true ? {} : option);
    return () => settings;
  }
  const defaults = settleGraphiQL({});
  return async (req, res) => {
    const decision: unknown = await option(req, res);
    if (typeof decision === 'boolean') return decision ? defaults : undefined;
    if (typeof decision === 'object' && decision !== null) return settleGraphiQL(decision);
    const message = `graphqlHTTP: option "graphiql" returned ${show(decision)}; accepted: a boolean, or options`;
    throw optionError(message, 'graphiql');
  };
}

/** The files are looked for on the first visit: an API that nobody browses reads nothing. */
function createLoader(): () => Promise<Assets> {
  let loading: Promise<Assets> | undefined;
  return () => {
    loading ??= loadAssets().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}

const NOT_THERE: Reply = {
  status: 404,
  headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
  body: 'Not Found\n',
};

async function fileReply(assets: Assets, name: string, req: ConnectRequest, gated: boolean): Promise<Reply> {
  const { 'accept-encoding': codings, 'if-none-match': ifNoneMatch } = req.headers;
  const reply = await assets.reply(name, String(codings ?? ''), ifNoneMatch);
  if (reply === undefined) return NOT_THERE;
  // What a gate lets one visitor have is not for a shared cache to give to the next.
  const scope = gated ? 'private' : 'public';
  return {
    ...reply,
    headers: { ...reply.headers, 'cache-control': `${scope}, max-age=31536000, immutable` },
  };
}

function pageHeaders({ policy }: IdeSettings, nonce: string, res: ServerResponse): Headers {
  const vary = [res.getHeader('vary') ?? []].flat().join(', ');
  const headers: Headers = {
    'content-type': 'text/html; charset=utf-8',
    // The nonce is for this response alone.
    'cache-control': 'no-store',
    vary: /(^|,)\s*(\*|accept)\s*(,|$)/i.test(vary) ? vary : vary === '' ? 'Accept' : `${vary}, Accept`,
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

function pathOf(url = '/'): string {
  const end = url.search(/[?#]/);
  return end === -1 ? url : url.slice(0, end);
}
