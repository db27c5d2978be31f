import { Readable } from 'node:stream';
import type { UploadReadOptions } from '../../../types/uploads.ts';
import type { Spool } from './spool.ts';

const CHUNK = 64 * 1024;

/**
 * Creates a stream of a spool from its first byte. Streams are independent and wait for bytes that have not
 * arrived.
 */
export function readSpool(spool: Spool, options: UploadReadOptions = {}): Readable {
  let position = 0;
  const deliver = (reader: Readable, chunk: Buffer): void => {
    position += chunk.length;
    reader.push(chunk);
  };
  const advance = (reader: Readable, size: number): void => {
    if (reader.destroyed) return;
    if (spool.error !== undefined) {
      reader.destroy(spool.error);
      return;
    }
    if (position === spool.size) {
      if (spool.complete) reader.push(null);
      else spool.wait(() => advance(reader, size));
      return;
    }
    const piece = spool.peek(position);
    if (piece !== undefined) {
      deliver(reader, piece);
      return;
    }
    const into = Buffer.allocUnsafeSlow(Math.min(Math.max(size, CHUNK), spool.size - position));
    spool.readAt(position, into, (error, bytes) => {
      if (error !== null) reader.destroy(error);
      else if (!reader.destroyed) deliver(reader, bytes === into.length ? into : into.subarray(0, bytes));
    });
  };
  const reader = new Readable({
    highWaterMark: options.highWaterMark ?? CHUNK,
    encoding: options.encoding,
    read(size) {
      advance(this, size);
    },
  });
  // A resolver may abandon a stream without listeners; the error at the end of the response must not end the
  // process.
  reader.on('error', () => {});
  return reader;
}

/** Reads the whole content into a new Buffer. */
export async function readAll(spool: Spool): Promise<Buffer<ArrayBuffer>> {
  while (!spool.complete && spool.error === undefined) {
    await new Promise<void>((resolve) => spool.wait(resolve));
  }
  if (spool.error !== undefined) throw spool.error;
  const all = Buffer.allocUnsafeSlow(spool.size);
  for (let position = 0; position < all.length; ) {
    const piece = spool.peek(position);
    position += piece === undefined ? await readOnce(spool, position, all) : piece.copy(all, position);
  }
  return all;
}

function readOnce(spool: Spool, position: number, all: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    if (spool.error !== undefined) throw spool.error;
    spool.readAt(position, all.subarray(position), (error, bytes) => {
      if (error !== null) reject(error);
      else resolve(bytes);
    });
  });
}
