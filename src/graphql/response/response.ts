import type { GraphQLError } from 'graphql';
import type { GraphQLCore } from '../../core/core.ts';
import { refusalError, toGraphQLError } from '../../execution/graphql-error.ts';
import type { ErrorOrigin, ExecutionOutcome, RequestError } from '../../execution/types.ts';
import { GRAPHQL_TYPE, JSON_TYPE } from '../../http/negotiation.ts';
import type { Headers, HttpError } from '../../http/reply.ts';
import { httpExtensionsOf, NO_EXTENSIONS } from './http-extensions.ts';

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
  readonly cause: Pick<ExecutionOutcome, 'errors'> & Partial<Pick<ExecutionOutcome, 'kind'>>;
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

/** Creates the response factory of one handler. */
export function createResponseFactory(core: GraphQLCore, statusCodes: 'legacy' | 'draft'): ResponseFactory {
  const isDraft = statusCodes === 'draft';
  const toJson = (errors: readonly GraphQLError[], origin?: ErrorOrigin): string =>
    JSON.stringify({ errors: core.formatErrors(errors, origin) });

  /** In the draft only a 2xx response may be application/json, because intermediaries send others as well. */
  const typeFor = (status: number, type: string): string => (isDraft && status >= 300 ? GRAPHQL_TYPE : type);

  function create(
    body: string | Buffer,
    defaultStatus: number,
    type: string,
    cause: Pick<ExecutionOutcome, 'errors' | 'isMasked'>,
  ): GraphQLResponse {
    const extensions = cause.isMasked === true ? NO_EXTENSIONS : httpExtensionsOf(cause.errors);
    const status = extensions.status ?? defaultStatus;
    return { status, type: typeFor(status, type), body, headers: extensions.headers, cause };
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
    fromBatch(results, type) {
      const joined = joinResponses(results.map((result) => fromResult(result, type)));
      return { ...joined, type: typeFor(joined.status, type) };
    },
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
function joinResponses(parts: readonly GraphQLResponse[]): Omit<GraphQLResponse, 'type'> {
  const statuses = new Set(parts.map(({ status }) => status));
  return {
    status: statuses.size === 1 ? (parts[0]?.status ?? 200) : 200,
    body: `[${parts.map(({ body }) => body.toString()).join(',')}]`,
    headers: Object.assign({}, ...parts.map(({ headers }) => headers)),
    cause: {
      get errors() {
        return parts.flatMap(({ cause }) => cause.errors);
      },
    },
  };
}
