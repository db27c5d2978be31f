import { GraphQLError } from 'graphql';
import { areEqualCursors, Progress, resumeAfter, type Source } from '../pubsub/cursor.ts';
import type { CursorSettings } from './options.ts';
import { CursorSigner, type Refusal } from './signature.ts';

/** A request to continue after a cursor. */
export interface CursorRequest {
  /** The signed cursor; null for a client that has none yet. */
  readonly after: unknown;
  /**
   * Whether the client receives results without data that contain its position: at the start, and after
   * events that a filter has left out.
   */
  readonly wantsPositions: boolean;
}

const MESSAGES: Readonly<Record<Refusal, string>> = {
  CURSOR_INVALID: 'The cursor is not valid for this operation and user. Query the current state.',
  CURSOR_EXPIRED: 'The cursor has expired. Query the current state.',
};
const NOT_RESUMED = 'The events after the cursor are not stored. Query the current state.';

/** Creates an error after which a client has to query the current state and subscribe without a cursor. */
const refetchError = (message: string, code: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code, refetch: true } });

/**
 * Returns the request in the extensions of an operation, or in the header `Last-Event-ID`, which EventSource
 * sends. The header is newer: the URL of an EventSource does not change.
 */
export function cursorRequest(
  extensions: Readonly<Record<string, unknown>> | null | undefined,
  lastEventId?: string | string[],
): CursorRequest | undefined {
  const wantsPositions = extensions?.['after'] !== undefined;
  const after = typeof lastEventId === 'string' && lastEventId !== '' ? lastEventId : extensions?.['after'];
  return after === undefined ? undefined : { after, wantsPositions };
}

/** The cursors of one subscription, or of a group of equal ones. */
export class OperationCursors {
  /** The cursor after which the source has to begin. */
  readonly after: string | undefined;
  readonly #signer: CursorSigner;
  #progress: Progress | undefined;
  /** The cursor of the last event. */
  delivered: string | undefined;

  private constructor(signer: CursorSigner, after: string | undefined) {
    this.#signer = signer;
    this.after = after;
  }

  /** Creates the cursors of an operation. Returns an error if the client sent a cursor that is refused. */
  static open(
    settings: CursorSettings,
    binding: string,
    request: CursorRequest | undefined,
  ): OperationCursors | GraphQLError {
    const signer = new CursorSigner(settings, binding);
    const after = request?.after ?? undefined;
    if (after === undefined) return new OperationCursors(signer, undefined);
    const verified = signer.verify(after);
    if ('refusal' in verified) return refetchError(MESSAGES[verified.refusal], verified.refusal);
    return new OperationCursors(signer, verified.cursor);
  }

  /** Returns cursors of the same operation for another source. */
  forSource({ after }: { readonly after: string | undefined }): OperationCursors {
    return new OperationCursors(this.#signer, after);
  }

  /** The position: events after it have not been delivered. Undefined until the source has started. */
  get cursor(): string | undefined {
    return this.#progress?.cursor;
  }

  /** Calls the `subscribe` resolver. Its streams begin after the cursor of the client. */
  resume<Result>(subscribe: () => Result): Result {
    return this.after === undefined ? subscribe() : resumeAfter(this.after, subscribe);
  }

  /**
   * Uses the positions of a source from now on.
   *
   * @throws GraphQLError if the source has not begun after the cursor: events would be missing.
   */
  follow(source: Source<unknown>): void {
    const { after } = this;
    const { startCursor } = source;
    if (after !== undefined && (startCursor === undefined || !areEqualCursors(startCursor, after)))
      throw refetchError(NOT_RESUMED, 'EVENTS_MISSED');
    this.#progress = new Progress(source);
  }

  /**
   * Called for each event before its result is sent. Returns the signed cursor, if the event has a cursor.
   */
  deliver(cursor: string | undefined): string | undefined {
    if (cursor === undefined) return undefined;
    this.#progress?.deliver(cursor);
    this.delivered = cursor;
    return this.#signer.sign(cursor);
  }

  /** Like `deliver`, for an event without a result. */
  skip(cursor: string | undefined): void {
    this.#progress?.deliver(cursor);
  }

  sign(cursor: string): string {
    return this.#signer.sign(cursor);
  }
}

/** Adds a signed cursor to the JSON text of `extensions`. */
export function withCursor(extensions: string | undefined, signed: string | undefined): string | undefined {
  if (signed === undefined) return extensions;
  const member = `"cursor":"${signed}"}`;
  return extensions === undefined ? `{${member}` : `${extensions.slice(0, -1)},${member}`;
}
