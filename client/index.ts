/** An operation as clients of graphql-ws and graphql-sse take it. */
export interface ResumableRequest {
  readonly query: string;
  readonly operationName?: string | null | undefined;
  readonly variables?: Record<string, unknown> | null | undefined;
  readonly extensions?: Record<string, unknown> | null | undefined;
}

/** A result as the clients pass it to `next`. */
export interface ResumableResult {
  readonly data?: unknown;
  readonly errors?: readonly unknown[] | undefined;
  readonly extensions?: unknown;
}

/** A client of graphql-ws or graphql-sse. */
export interface ResumableClient {
  subscribe(
    request: ResumableRequest,
    sink: {
      next(result: ResumableResult): void;
      error(error: unknown): void;
      complete(): void;
    },
  ): () => void;
}

/** Options of `resumable`. */
export interface ResumableOptions {
  /**
   * Called when a subscription delivers events but earlier ones may be missing: once at its start, and when
   * the server cannot continue after the last event. Query the current state then.
   * @default none
   */
  refetch?: ((request: ResumableRequest) => void) | undefined;
  /**
   * Milliseconds, at most, before a subscription starts again whose cursor was refused. The time is random,
   * so that clients do not all start in the same moment.
   * @default 1000
   */
  maxDelay?: number | undefined;
}

/** Positions that are remembered to recognise duplicates. */
const REMEMBERED = 1000;

/**
 * Returns the client with a `subscribe` that continues after the last event when the client connects again.
 * The server needs the option `cursors` and a source with a history.
 *
 * @param client - a client of graphql-ws or graphql-sse, whose own settings decide when it connects again
 * @example
 * const client = resumable(createClient({ url, retryAttempts: Infinity, retryWait }), { refetch: loadState });
 */
export function resumable<Client extends ResumableClient>(
  client: Client,
  { refetch, maxDelay = 1000 }: ResumableOptions = {},
): Client {
  const subscribe: ResumableClient['subscribe'] = (request, sink) => {
    const seen = new Set<string>();
    let after: string | null = null;
    let attempt = 0;
    let isStopped = false;
    let timer: ReturnType<typeof setTimeout>;
    let stop = (): void => {};
    // The clients serialise the request for each connection: `toJSON` then returns the newest cursor.
    const extensions = { ...request.extensions, after: { toJSON: () => after } };

    function restart(): void {
      if (isStopped) return;
      after = null;
      attempt++;
      stop();
      timer = setTimeout(start, Math.random() * maxDelay);
    }

    /** Returns true for a result without an event, or with an event that was received before. */
    function isHandled({ data, errors, extensions }: ResumableResult): boolean {
      const { cursor } = (extensions ?? {}) as { cursor?: unknown };
      if (typeof cursor !== 'string') return false;
      // The text before the dot is the position; the rest differs between equal positions.
      const [position = ''] = cursor.split('.');
      if (seen.has(position)) return true;
      const isFirst = after === null;
      after = cursor;
      if (isFirst) refetch?.(request);
      if (data === null && errors === undefined) return true;
      seen.add(position);
      for (const oldest of seen)
        if (seen.size > REMEMBERED) seen.delete(oldest);
        else break;
      return false;
    }

    function start(): void {
      const own = attempt;
      stop = client.subscribe(
        { ...request, extensions },
        {
          next(result) {
            if (own !== attempt) return;
            if (isRefused(result.errors)) restart();
            else if (!isHandled(result)) sink.next(result);
          },
          error(error) {
            if (own !== attempt) return;
            if (isRefused(error)) restart();
            else sink.error(error);
          },
          complete() {
            if (own === attempt) sink.complete();
          },
        },
      );
    }

    start();
    return () => {
      isStopped = true;
      clearTimeout(timer);
      stop();
    };
  };
  return { ...client, subscribe };
}

/** Whether the server cannot continue after the cursor. */
function isRefused(errors: unknown): boolean {
  return (
    Array.isArray(errors) &&
    errors.some((error: { extensions?: { refetch?: unknown } } | null) => error?.extensions?.refetch === true)
  );
}
