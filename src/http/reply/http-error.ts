import { readError } from '../../diagnostics/error-facts.ts';

/** Headers of a reply, by lower-case name. */
export type Headers = Record<string, string>;

/**
 * An error that the client may see: the status and headers of the response, and a message. It is a client's mistake,
 * unless it has a `cause`. Code that sets a cause also reports it.
 */
export class HttpError extends Error {
  readonly status: number;
  readonly headers: Headers;
  /** A stable code for programs, such as `BODY_TOO_LARGE`. */
  readonly code: string | undefined;
  readonly #isHttpError = true;

  constructor(
    status: number,
    message: string,
    details: { headers?: Headers; code?: string; cause?: unknown } = {},
  ) {
    super(message, details);
    this.name = 'HttpError';
    this.status = status;
    this.headers = details.headers ?? {};
    this.code = details.code;
  }

  /** Unlike `instanceof`, this never throws. A thrown value may be a revoked proxy. */
  static is(thrown: unknown): thrown is HttpError {
    return typeof thrown === 'object' && thrown !== null && #isHttpError in thrown;
  }
}

/**
 * Converts a thrown value to an Error for `next`, for which undefined, 'route' and 'router' have other
 * meanings.
 */
export function toError(error: unknown): Error {
  if (typeof error === 'object' && error !== null) return error as Error;
  const text = readError(error).message;
  return new Error(`A value was thrown that is not an Error: ${text}`, { cause: error });
}
