import type { GraphQLError } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { ResponseStatus } from '../../types/graphql.ts';
import type { GraphQLCore } from '../core/core.ts';
import { isPublicError } from '../core/errors.ts';
import { events } from '../diagnostics/events.ts';
import { refusalError, toGraphQLError } from '../execution/graphql-error.ts';
import type { ExecutionOutcome, GraphQLParams, RequestError } from '../execution/types.ts';
import { drainRequest } from '../http/body.ts';
import type { Exchange, GraphQLResponse, ResponseCause } from '../http/exchange.ts';
import { GRAPHQL_TYPE, JSON_TYPE } from '../http/negotiation.ts';
import {
  CONNECTION_HEADERS,
  destroyIncomplete,
  type Headers,
  type HttpError,
  isHttp2,
  type Reply,
  removeLifetime,
  withVary,
  writeReplyInPlace,
} from '../http/reply.ts';
import { assertSync, wrongReturnValue } from '../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { isObject, isThenable, settle } from '../options/values.ts';
import type { HttpSettings } from './options.ts';
import { originOf } from './request.ts';

/** What decides the status of a refused operation. */
type RefusalStatus = Omit<RequestError, 'kind' | 'errors'>;

/** Creates responses with the status that the media type requires (GraphQL over HTTP, "Status Codes"). */
export interface ResponseFactory {
  fromResult(exchange: Exchange, result: ExecutionOutcome | RequestError, type: string): GraphQLResponse;
  /** Joins the results of a batch into one JSON list, in their order. */
  fromBatch(exchange: Exchange, batch: Batch, type: string): GraphQLResponse;
  fromHttpError(exchange: Exchange, error: HttpError): GraphQLResponse;
  /** Creates the response to an unexpected error: 500, with the message hidden. */
  fromUnexpectedError(exchange: Exchange, error: unknown): GraphQLResponse;
}

/** The operations of a batch and their results, in the same order. */
interface Batch {
  readonly params: readonly GraphQLParams[];
  readonly results: readonly (ExecutionOutcome | RequestError)[];
}

/** Adds the place in a batch to the text of a result. */
export function withIndex(body: string, params: GraphQLParams | undefined): string {
  const { request, variables } = params?.index ?? {};
  const members = [
    ...(request === undefined ? [] : [`"requestIndex":${request}`]),
    ...(variables === undefined ? [] : [`"variableIndex":${variables}`]),
  ];
  return members.length === 0 ? body : `{${members.join()},${body.slice(1)}`;
}

export function createResponseFactory(
  core: GraphQLCore,
  statusCodes: HttpSettings['statusCodes'],
): ResponseFactory {
  const isDraft = statusCodes === 'spec';
  const toJson = (errors: readonly GraphQLError[], exchange: Exchange): string =>
    JSON.stringify({ errors: core.formatErrors(errors, originOf(exchange)) });

  /** In the draft only a 2xx response may be application/json, because intermediaries send others as well. */
  const typeFor = (status: number, type: string): string => (isDraft && status >= 300 ? GRAPHQL_TYPE : type);

  const chosenStatus = createStatusChoice(core, statusCodes);

  function create(
    exchange: Exchange,
    body: string | Buffer,
    { status: defaultStatus, type }: { readonly status: number; readonly type: string },
    cause: ResponseCause & Pick<ExecutionOutcome, 'isMasked'>,
  ): GraphQLResponse {
    const extensions = cause.isMasked === true ? NO_EXTENSIONS : httpExtensionsOf(cause.errors);
    const status = chosenStatus(exchange, extensions.status ?? defaultStatus, type, cause);
    return { status, type: typeFor(status, type), body, headers: extensions.headers, cause };
  }

  function refusalStatus({ status, limit, unparsable }: RefusalStatus, type: string): number {
    if (limit) return status;
    if (isDraft) return unparsable || status !== 400 ? status : 422;
    return type === GRAPHQL_TYPE || statusCodes === 'apollo' ? status : 200;
  }

  const fromResult: ResponseFactory['fromResult'] = (exchange, result, type) => {
    if (result.kind === 'error') {
      const status = refusalStatus(result, type);
      const response = create(exchange, toJson(result.errors, exchange), { status, type }, result);
      return withChallenge(exchange, response);
    }
    const { kind, body, release } = result;
    if (kind === 'data') {
      const status = chosenStatus(exchange, 200, type, result);
      return { status, type, body, release, headers: undefined, cause: result };
    }
    const status =
      kind === 'partial' ? (isDraft ? 294 : 200) : refusalStatus({ status: result.status ?? 400 }, type);
    return withChallenge(exchange, create(exchange, body, { status, type }, result));
  };

  return {
    fromResult,
    fromBatch(exchange, { params, results }, type) {
      const parts = results.map((result) => fromResult(exchange, result, type));
      // Lists of variables have their indices, as in the draft. Other clients expect results as of single requests.
      const hasIndices = params.some(({ index }) => index?.variables !== undefined);
      const joined = joinResponses(parts, (body, at) => (hasIndices ? withIndex(body, params[at]) : body));
      return { ...joined, type: typeFor(joined.status, type) };
    },
    fromHttpError(exchange, error) {
      const { message, code = 'BAD_REQUEST' } = error;
      const errors = [refusalError(message, code)];
      const status = isDraft && code === 'BAD_REQUEST' && error.status === 400 ? 422 : error.status;
      const type = exchange.accepted.type ?? JSON_TYPE;
      return {
        ...create(exchange, toJson(errors, exchange), { status, type }, { kind: 'error', errors }),
        headers: error.headers,
      };
    },
    fromUnexpectedError(exchange, error) {
      const errors = [toGraphQLError(error)];
      const type = exchange.accepted.type ?? JSON_TYPE;
      const body = toJson(errors, exchange);
      const cause = { kind: 'error', errors } as const;
      return { status: 500, type: typeFor(500, type), body, headers: undefined, cause };
    },
  };
}

/** A 401 has to say how to authenticate (RFC 9110 §15.5.2). Errors, or other code, may have another challenge. */
function withChallenge({ res }: Exchange, response: GraphQLResponse): GraphQLResponse {
  if (response.status !== 401 || res.hasHeader('www-authenticate')) return response;
  return { ...response, headers: { 'www-authenticate': 'Bearer', ...response.headers } };
}

/** Applies a function of the option `statusCodes`. The status stays as it is if the function fails. */
function createStatusChoice(
  core: GraphQLCore,
  choose: HttpSettings['statusCodes'],
): (exchange: Exchange, status: number, type: string, cause: ResponseCause) => number {
  if (typeof choose !== 'function') return (_, status) => status;
  return (exchange, status, type, { kind, errors }) => {
    try {
      const response: ResponseStatus = { status, type, kind: kind === 'error' ? 'refused' : kind, errors };
      const chosen = assertSync(choose(response), GRAPHQL_OPTIONS, 'statusCodes') ?? status;
      if (Number.isInteger(chosen) && chosen >= 200 && chosen < 600) return chosen;
      throw wrongReturnValue(
        GRAPHQL_OPTIONS,
        'statusCodes',
        chosen,
        'a status from 200 to 599, or undefined',
      );
    } catch (error) {
      core.reportError(error, originOf(exchange));
      return status;
    }
  };
}

/** Joins responses. The status is the status of the operations if they all have the same, otherwise 200. */
function joinResponses(
  parts: readonly GraphQLResponse[],
  toItem: (body: string, index: number) => string,
): Omit<GraphQLResponse, 'type'> {
  const statuses = new Set(parts.map(({ status }) => status));
  return {
    status: statuses.size === 1 ? (parts[0]?.status ?? 200) : 200,
    body: `[${parts.map(({ body }, index) => toItem(body.toString(), index)).join(',')}]`,
    headers: Object.assign({}, ...parts.map(({ headers }) => headers)),
    cause: {
      kind: parts.every(({ cause }) => cause.kind === 'data') ? 'data' : 'partial',
      get errors() {
        return parts.flatMap(({ cause }) => cause.errors);
      },
    },
  };
}

/** The status and headers that `extensions.http` of errors set. */
interface HttpExtensions {
  status?: number | undefined;
  headers?: Headers;
}

/** The extensions of masked errors, which set neither status nor headers. */
const NO_EXTENSIONS: HttpExtensions = Object.freeze({});

/** Headers that depend on the bytes of the response. */
const BODY_HEADERS = new Set(['content-length', 'transfer-encoding', 'trailer']);

/**
 * Merges `extensions.http` of all errors that are not masked. The first error that sets a status or a header takes
 * precedence.
 *
 * @throws RangeError for an informational status: the client would wait for another response.
 */
function httpExtensionsOf(errors: readonly GraphQLError[]): HttpExtensions {
  const merged: HttpExtensions = {};
  for (const error of errors) {
    const http = isPublicError(error) ? error.extensions['http'] : undefined;
    if (!isObject(http)) continue;
    const { status, headers } = http as { readonly status?: number; readonly headers?: unknown };
    merged.status ??= status;
    if (isObject(headers)) merged.headers = { ...lowerCaseHeaders(headers), ...merged.headers };
  }
  if (merged.status != null && merged.status < 200) {
    throw new RangeError(`extensions.http.status of an error is ${merged.status}; expected: 200 to 999`);
  }
  return merged;
}

/** Node would send `Cache-Control` besides `cache-control`. */
function lowerCaseHeaders(headers: Readonly<Record<string, unknown>>): Headers {
  const entries = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return Object.fromEntries(entries.filter(([name]) => !BODY_HEADERS.has(name))) as Headers;
}

/** Writes responses. Does nothing if other code has begun the response or the client disconnected. */
export interface Sender {
  send(exchange: Exchange, response: GraphQLResponse): MaybePromise<void>;
  /** Sends a response before the body of the request was read to its end. */
  sendEarly(exchange: Exchange, response: GraphQLResponse): void;
}

export function createSender(
  { responses }: GraphQLCore,
  { methods, compression }: Pick<HttpSettings, 'methods' | 'compression'>,
): Sender {
  const acceptsQuery = methods.includes('QUERY');
  const vary = compression === undefined ? 'Accept' : 'Accept, Accept-Encoding';

  function replyOf({ req, res }: Exchange, response: GraphQLResponse): Reply {
    const { status, body, headers: extra, release } = response;
    const headers = baseHeaders(res, response, vary);
    // RFC 10008 §3. The responses to POST say nothing about QUERY.
    if (acceptsQuery && req.method !== 'POST') headers['accept-query'] = JSON_TYPE;
    if (extra !== undefined) {
      const { vary } = headers;
      Object.assign(headers, extra);
      if (extra['vary'] !== undefined) headers['vary'] = withVary(vary, String(extra['vary']));
      // Node refuses them when the head is sent, and again with the response to that error.
      if (isHttp2(res)) for (const name of CONNECTION_HEADERS) delete headers[name];
    }
    return { status, headers, body, release };
  }

  function write(exchange: Exchange, reply: Reply, { cause }: GraphQLResponse): void {
    const { req, res } = exchange;
    if (res.headersSent || res.destroyed) return;
    writeReplyInPlace(req, res, reply);
    if (events.response.hasSubscribers) publish(exchange, reply.status, cause);
  }

  function send(exchange: Exchange, response: GraphQLResponse): MaybePromise<void> {
    const { res } = exchange;
    if (res.headersSent || res.destroyed) return;
    const reply = replyOf(exchange, response);
    const encoding = compression?.encodingFor(exchange, response);
    for (const { onReply } of responses) onReply(exchange, response, reply, encoding?.id);
    if (compression === undefined || encoding === undefined || reply.body === undefined) {
      write(exchange, reply, response);
      return;
    }
    const createTag = (): string | undefined => responses[0]?.tagOf(exchange, response);
    return settle(compression.encode(exchange, reply, encoding, createTag), () =>
      write(exchange, reply, response),
    );
  }

  return {
    send,
    sendEarly(exchange, response) {
      const { req, res } = exchange;
      if (res.headersSent || res.destroyed) return;
      // Draining would not help: the body did not arrive in time.
      if (response.status === 408) res.shouldKeepAlive = false;
      else drainRequest(req, res);
      const sent = send(exchange, response);
      if (isThenable(sent)) sent.catch((error: unknown) => destroyIncomplete(res, error));
    },
  };
}

const JSON_UTF8 = `${JSON_TYPE}; charset=utf-8`;

/**
 * Creates the headers of every response. Keeps Vary that the application has set, and the lifetime unless the response has
 * errors, which a cache could keep as long as the result.
 */
function baseHeaders(
  res: Exchange['res'],
  { status, type, cause }: Pick<GraphQLResponse, 'status' | 'type' | 'cause'>,
  vary: string,
): Headers {
  const headers: Headers = {
    'content-type': type === JSON_TYPE ? JSON_UTF8 : `${type}; charset=utf-8`,
    'x-content-type-options': 'nosniff',
    vary: withVary(res.getHeader('vary'), vary),
    'cache-control': 'no-store',
  };
  const own = res.getHeader('cache-control');
  if (cause.kind !== 'data' || status >= 400) removeLifetime(res);
  else if (own !== undefined) headers['cache-control'] = String(own);
  return headers;
}

function publish({ req, res, started }: Exchange, status: number, cause: ResponseCause): void {
  events.response.publish({
    req,
    res,
    status,
    get errors() {
      return cause.errors;
    },
    duration: started === 0 ? 0 : performance.now() - started,
  });
}
