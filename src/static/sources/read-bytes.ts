import { createHash } from 'node:crypto';
import { types } from 'node:util';
import type { SourceBytes, StaticSource } from '../../../types/sources.ts';
import { HTTP2_CHUNK } from '../../http/reply/response-writer.ts';
import { etagFromDigest, etagOfBytes } from '../disk/hash.ts';

/** Returns the bytes of a file; undefined if their number is not the expected one. */
export async function readAll(source: StaticSource, path: string, size: number): Promise<Buffer | undefined> {
  if (size === 0) return Buffer.alloc(0);
  const bytes = await source.open(path, { start: 0, end: size - 1 });
  if (types.isUint8Array(bytes)) {
    return bytes.length === size ? Buffer.from(bytes.buffer, bytes.byteOffset, size) : undefined;
  }
  const body = Buffer.allocUnsafeSlow(size);
  let filled = 0;
  for await (const chunk of bytes) {
    if (filled + chunk.length > size) return undefined;
    body.set(chunk, filled);
    filled += chunk.length;
  }
  return filled === size ? body : undefined;
}

export async function hashAll(source: StaticSource, path: string, size: number): Promise<string | undefined> {
  const hash = createHash('sha1');
  let length = 0;
  for await (const chunk of chunksOf(await source.open(path, { start: 0, end: size - 1 }))) {
    hash.update(chunk);
    length += chunk.length;
    // The stream may never end.
    if (length > size) return undefined;
  }
  return length === size ? etagFromDigest(size, hash) : undefined;
}

/**
 * Iterates over bytes, whether they are in one piece or a stream. Large chunks are split: they would fill the memory
 * of an HTTP/2 session.
 */
export async function* chunksOf(bytes: SourceBytes): AsyncGenerator<Uint8Array> {
  if (types.isUint8Array(bytes)) yield* split(bytes);
  else for await (const chunk of bytes) yield* split(chunk);
}

function* split(chunk: Uint8Array): Generator<Uint8Array> {
  if (chunk.length <= HTTP2_CHUNK) yield chunk;
  else
    for (let start = 0; start < chunk.length; start += HTTP2_CHUNK) {
      yield chunk.subarray(start, start + HTTP2_CHUNK);
    }
}

/** Reads a file again; undefined if it has another content now. */
export async function readVerified(
  source: StaticSource,
  path: string,
  size: number,
  etag: string | undefined,
): Promise<Buffer | undefined> {
  const body = await readAll(source, path, size);
  return body !== undefined && (await etagOfBytes(body)) === etag ? body : undefined;
}
