import { GraphQLError } from 'graphql';
import type { GraphQLCore } from '../../core/core.ts';
import { refusalError } from '../../core/errors.ts';
import type { ExecutionOutcome, RequestError } from '../../execution/types.ts';
import type { Headers, HttpError } from '../../http/reply/http-error.ts';
import { GRAPHQL_TYPE, JSON_TYPE } from '../request/media-types.ts';

/** What an operation, or the lack of one, comes to over HTTP. */
export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer;
  /** For bytes that may be used again (see `Outcome`). */
  readonly release?: ExecutionOutcome['release'];
  /** Headers that an error brought along. */
  readonly headers: Headers | undefined;
  /** Whose errors it tells, before masking: read them only for somebody who wants to know. */
  readonly cause: { readonly errors: readonly GraphQLError[] };
}

/** Turns what came out of a request into its answer: status by media type (GraphQL over HTTP, "Status Codes"). */
export interface Answers {
  ofResult(result: ExecutionOutcome | RequestError, type: string): Answer;
  ofError(error: HttpError, type: string | undefined): Answer;
  /** For a bug where nobody else answers it: without its text. */
  ofBug(error: unknown): Answer;
}

/** What an error's `extensions.http` may ask for. */
interface HttpWishes {
  status?: number | undefined;
  headers?: Headers;
}

const NO_WISHES: HttpWishes = Object.freeze({});

/** The answers of one handler. */
export function createAnswers(core: GraphQLCore, statusCodes: 'legacy' | 'draft'): Answers {
  const draft = statusCodes === 'draft';
  const text = (errors: readonly GraphQLError[]): string =>
    JSON.stringify({ errors: core.formatErrors(errors) });

  function answer(
    body: string | Buffer,
    status: number,
    type: string,
    cause: Pick<ExecutionOutcome, 'errors' | 'noExtensions'>,
  ): Answer {
    const wishes = cause.noExtensions === true ? NO_WISHES : wishesOf(cause.errors);
    const final = wishes.status ?? status;
    // By the draft only a 2xx answer may be plain application/json: anything else might be an intermediary's.
    return {
      status: final,
      type: draft && final >= 300 ? GRAPHQL_TYPE : type,
      body,
      headers: wishes.headers,
      cause,
    };
  }

  function refusalStatus({ status, limit, unparsable }: Omit<RequestError, 'errors'>, type: string): number {
    if (limit) return status;
    if (draft) return unparsable || status !== 400 ? status : 422;
    return type === GRAPHQL_TYPE ? status : 200;
  }

  return {
    ofResult(result, type) {
      if (!('body' in result)) {
        return answer(text(result.errors), refusalStatus(result, type), type, result);
      }
      const { kind, body, release } = result;
      if (kind === 'data') return { status: 200, type, body, release, headers: undefined, cause: result };
      const status = kind === 'partial' ? (draft ? 294 : 200) : refusalStatus({ status: 400 }, type);
      return answer(body, status, type, result);
    },
    ofError(error, type = JSON_TYPE) {
      const { message, code = 'BAD_REQUEST' } = error;
      const errors = [refusalError(message, code)];
      const status = draft && code === 'BAD_REQUEST' && error.status === 400 ? 422 : error.status;
      return { ...answer(text(errors), status, type, { errors }), headers: error.headers };
    },
    ofBug(error) {
      const original = error instanceof Error ? error : new Error(String(error));
      const errors = [new GraphQLError(original.message, { originalError: original })];
      return { ...answer(text(errors), 500, JSON_TYPE, { errors }), headers: undefined };
    },
  };
}

/** Status and headers that resolvers asked for; the first one to ask wins. */
function wishesOf(errors: readonly GraphQLError[]): HttpWishes {
  const wishes: HttpWishes = {};
  for (const { extensions } of errors) {
    const { http } = extensions;
    if (typeof http !== 'object' || http === null) continue;
    const { status, headers } = http as HttpWishes;
    wishes.status ??= status;
    if (headers !== undefined) wishes.headers = { ...headers, ...wishes.headers };
  }
  return wishes;
}
