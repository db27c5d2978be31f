import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { CursorSettings } from './options.ts';

// A signed cursor has three parts, separated by dots: the cursor, the time of its expiry, and the signature
// of both. The first part is equal for equal positions, so that clients recognise duplicates.

/** The maximum length of a signed cursor. */
const MAX_LENGTH = 4096;
/** Bytes of a signature. */
const SIGNATURE_BYTES = 16;

/** The reason why a cursor is refused. */
export type Refusal = 'CURSOR_INVALID' | 'CURSOR_EXPIRED';

const seconds = (): number => Math.floor(Date.now() / 1000);

/**
 * Signs and verifies the cursors of one operation of one user. The binding is part of the key, so the cursor
 * of another operation or user has a wrong signature.
 */
export class CursorSigner {
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

  /** Returns the signed cursor. */
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
  verify(signed: unknown): { readonly cursor: string } | { readonly refusal: Refusal } {
    const parts = typeof signed === 'string' && signed.length <= MAX_LENGTH ? signed.split('.') : [];
    const [cursor = '', expiry = '', signature = ''] = parts;
    const given = Buffer.from(signature, 'base64url');
    if (parts.length !== 3 || given.length !== SIGNATURE_BYTES) return { refusal: 'CURSOR_INVALID' };
    const text = `${cursor}.${expiry}`;
    const isValid = this.#settings.keys.some((key, index) =>
      timingSafeEqual(given, signatureOf(text, index === 0 ? this.#key : derive(key, this.#binding))),
    );
    if (!isValid) return { refusal: 'CURSOR_INVALID' };
    if (Number.parseInt(expiry, 36) < seconds()) return { refusal: 'CURSOR_EXPIRED' };
    return { cursor: Buffer.from(cursor, 'base64url').toString() };
  }
}

const derive = (key: KeyObject, binding: string): Buffer =>
  createHmac('sha256', key).update(binding).digest();

const signatureOf = (text: string, key: Buffer): Buffer =>
  createHmac('sha256', key).update(text).digest().subarray(0, SIGNATURE_BYTES);
