import type { ServerResponse } from 'node:http';
import type { ConnectRequest, MaybePromise, NextFunction } from '../../types/connect.ts';
import { refusals } from '../debug.ts';
import { createIde } from '../graphiql/ide.ts';
import { createNegotiator } from '../http/accept.ts';
import { GONE } from '../http/body.ts';
import { HttpError } from '../http/error.ts';
import { type Reply, writeReply } from '../http/reply.ts';
import { createAnswers } from './answer.ts';
import { joinResults, operationsOf } from './batch.ts';
import type { GraphQLCore } from './core.ts';
import { events } from './events.ts';
import type { Exchange } from './exchange.ts';
import { isThenable } from './execute.ts';
import { createGuard } from './guard.ts';
import type { HttpSettings, MethodName } from './http-settings.ts';
import { GRAPHQL_TYPE, isJsonType, JSON_TYPE } from './media.ts';
import { createOperate, type Result } from './operate.ts';
import { paramsOfBody, paramsOfUrl } from './params.ts';
import { createReceive, unsupported } from './receive.ts';
import { createSend } from './send.ts';
import { startPhases } from './timing.ts';

/** A request handler that also works without a `next`, under a bare server. */
export type Handler = (req: ConnectRequest, res: ServerResponse, next?: NextFunction) => void;

/** Answers GraphQL requests over HTTP: admit, receive, operate, send. Read this first. */
export function createHandler(core: GraphQLCore, settings: HttpSettings): Handler {
  const negotiate = createNegotiator([JSON_TYPE, GRAPHQL_TYPE]);
  const ide = settings.methods.includes('GET') ? createIde(settings.graphiql) : undefined;
  const guard = createGuard(settings);
  const receive = createReceive(settings, guard);
  const operate = createOperate(core, guard);
  const answers = createAnswers(core, settings.statusCodes);
  const send = createSend(settings);
  const methods = new Set<string | undefined>(settings.methods);

  /** Refuses what can be refused by the head alone. */
  function admit({ req, accepted }: Exchange): void {
    if (!methods.has(req.method)) throw wrongMethod(req.method, settings.methods);
    guard.host(req);
    if (accepted.type === undefined) throw notAcceptable();
    if (req.method === 'POST') return;
    const contentType = req.headers['content-type'];
    if (contentType !== undefined && !isJsonType(contentType)) throw unsupported('other');
    guard.read(req);
  }

  /** Runs what the body holds: one operation or a batch of them. */
  function perform(exchange: Exchange, body: unknown): MaybePromise<void> {
    const { list, batch } = operationsOf(body, settings);
    if (!batch) return finish(exchange, operate(exchange, paramsOfBody(body)));
    const results = list.map((item) => operate(exchange, paramsOfBody(item)));
    return Promise.all(results).then((settled) =>
      send(exchange, joinResults(settled, answers, typeOf(exchange))),
    );
  }

  function finish(exchange: Exchange, result: MaybePromise<Result>): MaybePromise<void> {
    return isThenable(result) ? result.then((settled) => reply(exchange, settled)) : reply(exchange, result);
  }

  function reply(exchange: Exchange, result: Result): void {
    const type = typeOf(exchange);
    send(exchange, 'body' in result ? answers.ofOutcome(result, type) : answers.ofRefusal(result, type));
  }

  /** A client's mistake is answered, a bug goes to the error handlers, and a client that has left to nobody. */
  function fail(exchange: Exchange, error: unknown): void {
    const { req, res, next } = exchange;
    if (error === GONE || res.headersSent) return;
    if (error instanceof HttpError) {
      refusals.graphql('%s %s: %d %s', req.method, req.url, error.status, error.message);
      send(exchange, answers.ofError(error, exchange.accepted.type), true);
    } else if (next !== undefined) next(error);
    else
      send(
        exchange,
        answers.ofError(new HttpError(500, 'Internal server error', { code: 'INTERNAL' }), JSON_TYPE),
        true,
      );
  }

  function process(exchange: Exchange): MaybePromise<void> {
    admit(exchange);
    const { req, res } = exchange;
    if (req.method !== 'POST') return finish(exchange, operate(exchange, paramsOfUrl(req.url ?? '/')));
    const body = receive(req, res);
    return isThenable(body) ? body.then((value) => perform(exchange, value)) : perform(exchange, body);
  }

  /** What answers for the IDE: its page where HTML is preferred, and the page's files. */
  function pageFor(req: ConnectRequest, res: ServerResponse): Promise<Reply | undefined> | undefined {
    return ide === undefined || (req.method !== 'GET' && req.method !== 'HEAD')
      ? undefined
      : ide.reply(req, res);
  }

  function serve(req: ConnectRequest, res: ServerResponse, next: NextFunction | undefined): void {
    req.state ??= {};
    const exchange: Exchange = {
      req,
      res,
      next,
      accepted: negotiate(req.headers.accept),
      started: events.response.hasSubscribers ? performance.now() : 0,
      phases: settings.serverTiming ? startPhases() : undefined,
    };
    if (events.request.hasSubscribers) events.request.publish({ req, res });
    try {
      const done = process(exchange);
      if (isThenable(done)) done.catch((error: unknown) => fail(exchange, error));
    } catch (error) {
      fail(exchange, error);
    }
  }

  return (req, res, next) => {
    const page = pageFor(req, res);
    if (page === undefined) {
      if (next !== undefined && isBelowMount(req)) next();
      else serve(req, res, next);
      return;
    }
    page.then(
      (reply) =>
        reply === undefined ? serve(req, res, next) : writeReply(res, reply, req.method === 'HEAD'),
      (error: unknown) => next?.(error),
    );
  };
}

const typeOf = ({ accepted }: Exchange): string => accepted.type ?? JSON_TYPE;

/** A mount answers its own path; what lies below belongs to later middlewares. An exact route has stripped nothing. */
function isBelowMount({ url = '/', originalUrl }: ConnectRequest): boolean {
  if (originalUrl === undefined || originalUrl.length === url.length) return false;
  const second = url.charCodeAt(1);
  return url.length > 1 && second !== 63 /* ? */;
}

function wrongMethod(method: string | undefined, allowed: readonly MethodName[]): HttpError {
  return new HttpError(405, `${method} is not a method of this endpoint; allowed: ${allowed.join(', ')}`, {
    headers: { allow: allowed.join(', ') },
    code: 'METHOD_NOT_ALLOWED',
  });
}

const notAcceptable = (): HttpError =>
  new HttpError(406, `Acceptable are ${GRAPHQL_TYPE} and ${JSON_TYPE}`, { code: 'NOT_ACCEPTABLE' });
