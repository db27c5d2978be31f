import type { IncomingMessage, ServerResponse } from 'node:http';
import { events } from '../../core/diagnostics.ts';
import { drainRequest } from '../../http/body/drain.ts';
import { withVary } from '../../http/negotiation/vary.ts';
import type { Headers } from '../../http/reply/http-error.ts';
import { writeOwnedReply } from '../../http/reply/write-reply.ts';
import { assertSync } from '../../options/assert-sync.ts';
import { GRAPHQL_OPTIONS } from '../../options/scopes.ts';
import type { Exchange } from '../exchange.ts';
import type { HttpSettings } from '../options.ts';
import { JSON_TYPE } from '../request/media-types.ts';
import type { Answer } from './response.ts';

/** Writes an answer; `early` when the request's body may not have been read. */
export type Send = (exchange: Exchange, answer: Answer, early?: boolean) => void;

/** The writer of one handler. */
export function createSend({ pretty }: Pick<HttpSettings, 'pretty'>): Send {
  const wantsPretty =
    typeof pretty === 'function'
      ? (req: IncomingMessage) => assertSync(pretty(req), GRAPHQL_OPTIONS, 'pretty')
      : () => pretty;

  return (exchange, answer, early = false) => {
    const { req, res, phases } = exchange;
    if (res.headersSent || res.destroyed) return;
    const headers = headersOf(res, answer.type);
    if (phases !== undefined) headers['server-timing'] = phases.toString();
    if (answer.headers !== undefined) Object.assign(headers, answer.headers);
    const body = wantsPretty(req) ? indented(answer.body) : answer.body;
    if (early) leaveBody(req, res, answer.status);
    const { status, release } = answer;
    writeOwnedReply(res, { status, headers, body, release }, req.method === 'HEAD');
    if (events.response.hasSubscribers) publish(exchange, answer);
  };
}

/** Answers before the body has come to its end: a slow one costs the connection, others are thrown away to a cap. */
function leaveBody(req: IncomingMessage, res: ServerResponse, status: number): void {
  if (status === 408) res.shouldKeepAlive = false;
  else drainRequest(req, res);
}

const JSON_UTF8 = `${JSON_TYPE}; charset=utf-8`;

/** The headers of every answer; an application's own Cache-Control and Vary are kept. */
function headersOf(res: ServerResponse, type: string): Headers {
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

const indented = (body: string | Buffer): string =>
  `${JSON.stringify(JSON.parse(body.toString()), undefined, 2)}\n`;

function publish({ req, res, started }: Exchange, { status, cause }: Answer): void {
  events.response.publish({
    req,
    res,
    status,
    errors: cause.errors,
    duration: started === 0 ? 0 : performance.now() - started,
  });
}
