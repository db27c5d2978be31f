import { hash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { GRAPHQL_TYPE } from '../exchange.ts';

/**
 * Creates the ETag of a response from its bytes. Responses of another media type have another tag, since they
 * are other representations (RFC 9110 §8.8.1).
 */
export function etagOf(body: string | Buffer, type: string): string {
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  const digest = hash('sha1', body, 'base64url');
  return `"${length.toString(16)}-${digest}${type === GRAPHQL_TYPE ? '-g' : ''}"`;
}

/**
 * Weakens a tag if other middleware has patched the response: a compressor sends other bytes (RFC 9110
 * §8.8.3.3).
 */
export function etagFor(res: ServerResponse, tag: string): string {
  return Object.hasOwn(res, 'write') ? `W/${tag}` : tag;
}
