import { randomBytes } from 'node:crypto';
import type { ByteRange } from '../../http/conditions/ranges.ts';
import type { Section } from '../stream/stream-file.ts';

/** A response body of several ranges (RFC 9110 §14.6). */
interface MultipartBody {
  readonly type: string;
  readonly length: number;
  readonly sections: readonly Section[];
  readonly tail: Buffer;
}

/**
 * Builds a `multipart/byteranges` body. The boundary is random, so that no file can contain it on purpose.
 */
export function buildMultipart(ranges: readonly ByteRange[], size: number, type: string): MultipartBody {
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

/** The whole multipart body, from a file in memory. */
export function joinSections(sections: readonly Section[], tail: Buffer, file: Buffer): Buffer {
  const pieces = sections.flatMap(({ before, start, end }) => [
    before ?? Buffer.alloc(0),
    file.subarray(start, end + 1),
  ]);
  return Buffer.concat([...pieces, tail]);
}
