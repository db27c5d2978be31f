import { randomBytes } from 'node:crypto';
import type { ByteRange } from '../../http/conditions/ranges.ts';

/** A stretch of a file with what is written before it. */
export interface Section extends ByteRange {
  readonly before: Buffer | undefined;
}

/** A body made of several ranges (RFC 9110 §14.6). */
export interface Parts {
  readonly type: string;
  readonly length: number;
  readonly sections: readonly Section[];
  readonly tail: Buffer;
}

/** Lays out `multipart/byteranges`. The boundary is random, so that no file can contain it on purpose. */
export function layOutParts(ranges: readonly ByteRange[], size: number, type: string): Parts {
  const boundary = randomBytes(18).toString('hex');
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  let length = tail.length;
  const sections = ranges.map(({ start, end }, index) => {
    const lines = [
      `${index === 0 ? '' : '\r\n'}--${boundary}`,
      `Content-Type: ${type}`,
      `Content-Range: bytes ${start}-${end}/${size}`,
    ];
    const before = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`);
    length += before.length + end - start + 1;
    return { before, start, end };
  });
  return { type: `multipart/byteranges; boundary=${boundary}`, length, sections, tail };
}

/** The whole multipart body, cut out of bytes in memory. */
export function joinParts(parts: Parts, body: Buffer): Buffer {
  const pieces = parts.sections.flatMap(({ before, start, end }) => [
    before ?? Buffer.alloc(0),
    body.subarray(start, end + 1),
  ]);
  return Buffer.concat([...pieces, parts.tail], parts.length);
}
