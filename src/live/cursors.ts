import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { GraphQLError } from 'graphql';
import type { OperationFunction } from '../core/caller.ts';
import { duration, optionalFunction, type Rules, resolveOptions, unchecked } from '../options/rules.ts';
import { CURSOR_OPTIONS } from '../options/scopes.ts';
import { secretsOf } from '../options/secrets.ts';
import { areEqualCursors, Progress, resumeAfter, type Source } from '../pubsub/cursor.ts';

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
    if (verified.kind === 'refused') return refetchError(MESSAGES[verified.refusal], verified.refusal);
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

  /** Called for each event before its result is sent. Returns the signed cursor, if the event has a cursor. */
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

// A signed cursor has three parts, separated by dots: the cursor, the time of its expiry, and the signature
// of both. The first part is equal for equal positions, so that clients recognise duplicates.

/** The maximum length of a signed cursor. */
const MAX_LENGTH = 4096;
/** Bytes of a signature. */
const SIGNATURE_BYTES = 16;

/** The reason why a cursor is refused. */
type Refusal = 'CURSOR_INVALID' | 'CURSOR_EXPIRED';

/** The cursor of the client, or why it is refused. */
type Verified =
  | { readonly kind: 'cursor'; readonly cursor: string }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

const seconds = (): number => Math.floor(Date.now() / 1000);

/**
 * Signs and verifies the cursors of one operation of one user. The binding is part of the key, so the cursor
 * of another operation or user has a wrong signature.
 */
class CursorSigner {
  readonly #settings: CursorSettings;
  readonly #binding: string;
  readonly #key: Buffer;
  #cursor: string | undefined;
  #signed = '';
  #signedAt = 0;

  constructor(settings: CursorSettings, binding: string) {
    this.#settings = settings;
    this.#binding = binding;
    this.#key = derive(settings.keys[0] as KeyObject, binding);
  }

  sign(cursor: string): string {
    const now = seconds();
    // Keep-alive messages repeat the cursor of an idle subscription.
    if (cursor === this.#cursor && (now - this.#signedAt) * 10_000 < this.#settings.maxAge)
      return this.#signed;
    const expiry = now + Math.ceil(this.#settings.maxAge / 1000);
    const text = `${Buffer.from(cursor).toString('base64url')}.${expiry.toString(36)}`;
    this.#cursor = cursor;
    this.#signedAt = now;
    this.#signed = `${text}.${signatureOf(text, this.#key).toString('base64url')}`;
    return this.#signed;
  }

  /** Returns the cursor in a signed cursor, or why it is refused. */
  verify(signed: unknown): Verified {
    const parts = typeof signed === 'string' && signed.length <= MAX_LENGTH ? signed.split('.') : [];
    const [cursor = '', expiry = '', signature = ''] = parts;
    const given = Buffer.from(signature, 'base64url');
    if (parts.length !== 3 || given.length !== SIGNATURE_BYTES)
      return { kind: 'refused', refusal: 'CURSOR_INVALID' };
    const text = `${cursor}.${expiry}`;
    const isValid = this.#settings.keys.some((key, index) =>
      timingSafeEqual(given, signatureOf(text, index === 0 ? this.#key : derive(key, this.#binding))),
    );
    if (!isValid) return { kind: 'refused', refusal: 'CURSOR_INVALID' };
    if (Number.parseInt(expiry, 36) < seconds()) return { kind: 'refused', refusal: 'CURSOR_EXPIRED' };
    return { kind: 'cursor', cursor: Buffer.from(cursor, 'base64url').toString() };
  }
}

const derive = (key: KeyObject, binding: string): Buffer =>
  createHmac('sha256', key).update(binding).digest();

const signatureOf = (text: string, key: Buffer): Buffer =>
  createHmac('sha256', key).update(text).digest().subarray(0, SIGNATURE_BYTES);

/** The option `cursors` after checks. */
export interface CursorSettings {
  /** The first one signs. */
  readonly keys: readonly KeyObject[];
  /** Milliseconds. */
  readonly maxAge: number;
  readonly user: OperationFunction | undefined;
}

interface Given extends Omit<CursorSettings, 'keys'> {
  readonly key: unknown;
}

const DAY = 86_400_000;

const RULES: Rules<Given> = {
  key: unchecked,
  user: optionalFunction(),
  maxAge: duration(DAY),
};

/** Checks the option `cursors` and fills in the defaults; undefined if the option is not set. */
export function resolveCursors(given: unknown): CursorSettings | undefined {
  if (given === undefined) return undefined;
  const { key, ...settings } = resolveOptions<Given>(CURSOR_OPTIONS, given, RULES);
  const keys = secretsOf(CURSOR_OPTIONS, 'cursors.key', key).map((secret) => createSecretKey(secret));
  return { ...settings, keys };
}
