import type { IncomingMessage } from 'node:http';
import { events } from '../../core/diagnostics.ts';
import { drainRequest } from '../../http/body.ts';
import { JSON_TYPE } from '../../http/negotiation.ts';
import {
  CONNECTION_HEADERS,
  type Headers,
  isHttp2,
  type Reply,
  withVary,
  writeReplyInPlace,
} from '../../http/reply.ts';
import { assertSync } from '../../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../../options/scopes.ts';
import { createCacheHeaders } from '../caching/headers.ts';
import { addStoreHeaders } from '../caching/tag-lists.ts';
import type { Exchange } from '../exchange.ts';
import type { HttpSettings } from '../options.ts';
import type { GraphQLResponse } from './response.ts';

/** Writes responses. Does nothing if other code has begun the response or the client disconnected. */
export interface Sender {
  send(exchange: Exchange, response: GraphQLResponse): void;
  /** Sends a response before the body of the request was read to its end. */
  sendEarly(exchange: Exchange, response: GraphQLResponse): void;
}

/** Creates the sender of one handler. */
export function createSender({
  pretty,
  methods,
  cacheControl,
  responseCache,
}: Pick<HttpSettings, 'pretty' | 'methods' | 'cacheControl' | 'responseCache'>): Sender {
  const acceptsQuery = methods.includes('QUERY');
  const addCacheHeaders =
    cacheControl && createCacheHeaders({ ...cacheControl, invalidates: responseCache !== undefined });
  const isPretty =
    typeof pretty === 'function'
      ? (req: IncomingMessage) => assertSync(pretty(req), GRAPHQL_OPTIONS, 'pretty')
      : () => pretty;

  function replyOf({ req, res, timings }: Exchange, response: GraphQLResponse): Reply {
    const { status, type, headers: extra, release } = response;
    const headers = baseHeaders(res, type);
    // RFC 10008 §3. The responses to POST say nothing about QUERY.
    if (acceptsQuery && req.method !== 'POST') headers['accept-query'] = JSON_TYPE;
    if (timings !== undefined) headers['server-timing'] = timings.toString();
    if (extra !== undefined) {
      const { vary } = headers;
      Object.assign(headers, extra);
      if (extra['vary'] !== undefined) headers['vary'] = withVary(vary, String(extra['vary']));
      // Node refuses them when the head is sent, and again with the response to that error.
      if (isHttp2(res)) for (const name of CONNECTION_HEADERS) delete headers[name];
    }
    const body = isPretty(req) ? indent(response.body) : response.body;
    return { status, headers, body, release };
  }

  function send(exchange: Exchange, response: GraphQLResponse): void {
    const { req, res } = exchange;
    if (res.headersSent || res.destroyed) return;
    const reply = replyOf(exchange, response);
    if (responseCache !== undefined) addStoreHeaders(reply.headers, exchange);
    if (exchange.caching !== undefined) addCacheHeaders?.(exchange, response, reply);
    writeReplyInPlace(req, res, reply);
    if (events.response.hasSubscribers) publish(exchange, reply.status, response.cause);
  }

  return {
    send,
    sendEarly(exchange, response) {
      const { req, res } = exchange;
      if (res.headersSent || res.destroyed) return;
      // Draining would not help: the body did not arrive in time.
      if (response.status === 408) res.shouldKeepAlive = false;
      else drainRequest(req, res);
      send(exchange, response);
    },
  };
}

const JSON_UTF8 = `${JSON_TYPE}; charset=utf-8`;

/** Creates the headers of every response; keeps Cache-Control and Vary that the application has set. */
function baseHeaders(res: Exchange['res'], type: string): Headers {
  const headers: Headers = {
    'content-type': type === JSON_TYPE ? JSON_UTF8 : `${type}; charset=utf-8`,
    'x-content-type-options': 'nosniff',
    vary: withVary(res.getHeader('vary'), 'Accept'),
    'cache-control': 'no-store',
  };
  const own = res.getHeader('cache-control');
  if (own !== undefined) headers['cache-control'] = String(own);
  return headers;
}

const indent = (body: string | Buffer): string =>
  `${JSON.stringify(JSON.parse(body.toString()), undefined, 2)}\n`;

function publish({ req, res, started }: Exchange, status: number, cause: GraphQLResponse['cause']): void {
  events.response.publish({
    req,
    res,
    status,
    errors: cause.errors,
    duration: started === 0 ? 0 : performance.now() - started,
  });
}
