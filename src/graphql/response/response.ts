import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GraphQLError } from 'graphql';
import type { GraphQLCore } from '../../core/core.ts';
import { events } from '../../core/diagnostics.ts';
import { isPublicError, refusalError, toGraphQLError } from '../../core/errors.ts';
import type { ErrorOrigin, ExecutionOutcome, RequestError } from '../../execution/types.ts';
import { drainRequest } from '../../http/body/drain.ts';
import type { Headers, HttpError } from '../../http/reply/http-error.ts';
import { withVary, writeReplyInPlace } from '../../http/reply/write-reply.ts';
import { assertSync } from '../../options/resolve-options.ts';
import { GRAPHQL_OPTIONS } from '../../options/scopes.ts';
import { type Exchange, GRAPHQL_TYPE, JSON_TYPE } from '../exchange.ts';
import type { HttpSettings } from '../options.ts';

/** The response to one operation or one batch, before it is written. */
export interface GraphQLResponse {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer;
  /** Releases a body in a pooled buffer; see `ExecutionOutcome`. */
  readonly release?: ExecutionOutcome['release'];
  /** Headers of a refused request, or headers that errors of resolvers set. */
  readonly headers: Headers | undefined;
  /** Holds the errors before masking, which some outcomes create when they are read. */
  readonly cause: { readonly errors: readonly GraphQLError[] };
}

/** Creates responses with the status that the media type requires (GraphQL over HTTP, "Status Codes"). */
export interface ResponseFactory {
  fromResult(result: ExecutionOutcome | RequestError, type: string): GraphQLResponse;
  /** Joins the results of a batch into one JSON list, in their order. */
  fromBatch(results: readonly (ExecutionOutcome | RequestError)[], type: string): GraphQLResponse;
  fromHttpError(error: HttpError, type: string | undefined): GraphQLResponse;
  /** Creates the response to an unexpected error if there is no `next`: 500, with the message hidden. */
  fromUnexpectedError(error: unknown, origin: ErrorOrigin): GraphQLResponse;
}

/** The status and headers that `extensions.http` of an error may set. */
interface HttpExtensions {
  status?: number | undefined;
  headers?: Headers;
}

/** Masked errors set neither status nor headers. */
const NO_EXTENSIONS: HttpExtensions = Object.freeze({});

/** Creates the response factory of one handler. */
export function createResponseFactory(core: GraphQLCore, statusCodes: 'legacy' | 'draft'): ResponseFactory {
  const isDraft = statusCodes === 'draft';
  const toJson = (errors: readonly GraphQLError[], origin?: ErrorOrigin): string =>
    JSON.stringify({ errors: core.formatErrors(errors, origin) });

  function create(
    body: string | Buffer,
    defaultStatus: number,
    type: string,
    cause: Pick<ExecutionOutcome, 'errors' | 'isMasked'>,
  ): GraphQLResponse {
    const extensions = cause.isMasked === true ? NO_EXTENSIONS : httpExtensions(cause.errors);
    const status = extensions.status ?? defaultStatus;
    // In the draft only a 2xx response may be application/json, because intermediaries send others as well.
    const finalType = isDraft && status >= 300 ? GRAPHQL_TYPE : type;
    return { status, type: finalType, body, headers: extensions.headers, cause };
  }

  function refusalStatus({ status, limit, unparsable }: Omit<RequestError, 'errors'>, type: string): number {
    if (limit) return status;
    if (isDraft) return unparsable || status !== 400 ? status : 422;
    return type === GRAPHQL_TYPE ? status : 200;
  }

  function fromResult(result: ExecutionOutcome | RequestError, type: string): GraphQLResponse {
    if (!('body' in result)) {
      return create(toJson(result.errors), refusalStatus(result, type), type, result);
    }
    const { kind, body, release } = result;
    if (kind === 'data') return { status: 200, type, body, release, headers: undefined, cause: result };
    const status = kind === 'partial' ? (isDraft ? 294 : 200) : refusalStatus({ status: 400 }, type);
    return create(body, status, type, result);
  }

  return {
    fromResult,
    fromBatch: (results, type) =>
      joinResponses(
        results.map((result) => fromResult(result, type)),
        type,
      ),
    fromHttpError(error, type = JSON_TYPE) {
      const { message, code = 'BAD_REQUEST' } = error;
      const errors = [refusalError(message, code)];
      const status = isDraft && code === 'BAD_REQUEST' && error.status === 400 ? 422 : error.status;
      return { ...create(toJson(errors), status, type, { errors }), headers: error.headers };
    },
    fromUnexpectedError(error, origin) {
      const errors = [toGraphQLError(error)];
      return { ...create(toJson(errors, origin), 500, JSON_TYPE, { errors }), headers: undefined };
    },
  };
}

/** Joins responses. The status is the status of the operations if they all have the same, otherwise 200. */
function joinResponses(parts: readonly GraphQLResponse[], type: string): GraphQLResponse {
  const statuses = new Set(parts.map(({ status }) => status));
  return {
    status: statuses.size === 1 ? (parts[0]?.status ?? 200) : 200,
    type,
    body: `[${parts.map(({ body }) => body.toString()).join(',')}]`,
    headers: Object.assign({}, ...parts.map(({ headers }) => headers)),
    cause: {
      get errors() {
        return parts.flatMap(({ cause }) => cause.errors);
      },
    },
  };
}

/** Merges `extensions.http` of all errors that are not masked; the first error that sets a status or a header takes precedence. */
function httpExtensions(errors: readonly GraphQLError[]): HttpExtensions {
  const merged: HttpExtensions = {};
  for (const error of errors) {
    const http = isPublicError(error) ? error.extensions['http'] : undefined;
    if (typeof http !== 'object' || http === null) continue;
    const { status, headers } = http as HttpExtensions;
    merged.status ??= status;
    if (headers !== undefined) merged.headers = { ...headers, ...merged.headers };
  }
  return merged;
}

/** Writes responses. Does nothing if other code has begun the response or the client disconnected. */
export interface Sender {
  send(exchange: Exchange, response: GraphQLResponse): void;
  /** Sends a response before the body of the request was read to its end. */
  sendEarly(exchange: Exchange, response: GraphQLResponse): void;
}

/** Creates the sender of one handler. */
export function createSender({ pretty }: Pick<HttpSettings, 'pretty'>): Sender {
  const isPretty =
    typeof pretty === 'function'
      ? (req: IncomingMessage) => assertSync(pretty(req), GRAPHQL_OPTIONS, 'pretty')
      : () => pretty;

  function replyOf({ req, res, timings }: Exchange, response: GraphQLResponse) {
    const { status, type, headers: extra, release } = response;
    const headers = baseHeaders(res, type);
    if (timings !== undefined) headers['server-timing'] = timings.toString();
    if (extra !== undefined) Object.assign(headers, extra);
    const body = isPretty(req) ? indent(response.body) : response.body;
    return { status, headers, body, release };
  }

  function send(exchange: Exchange, response: GraphQLResponse): void {
    const { req, res } = exchange;
    if (res.headersSent || res.destroyed) return;
    writeReplyInPlace(req, res, replyOf(exchange, response));
    if (events.response.hasSubscribers) publish(exchange, response);
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
function baseHeaders(res: ServerResponse, type: string): Headers {
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

function publish({ req, res, started }: Exchange, { status, cause }: GraphQLResponse): void {
  events.response.publish({
    req,
    res,
    status,
    errors: cause.errors,
    duration: started === 0 ? 0 : performance.now() - started,
  });
}
