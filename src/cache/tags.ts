import { createHash } from 'node:crypto';

/** The tag of all entries. */
export const ALL_TAGS = '*';

/** The maximum number of tags of one entry. A response with more is not stored. */
export const MAX_TAGS = 1000;

/** Clients may choose parts of a tag, so a longer one is replaced by its hash. */
const MAX_LENGTH = 256;

/** Headers separate tags by spaces or commas, and quote them (RFC 9875). */
const IS_PLAIN = /^[!#-+\--[\]-~]*$/;
const OTHERS = /[^!#-+\--[\]-~]/gu;

/** Returns a tag that may be part of a header, with a bounded length. Other characters are percent-encoded. */
export function normalTag(tag: string): string {
  const plain = IS_PLAIN.test(tag) ? tag : tag.replace(OTHERS, encode);
  return plain.length <= MAX_LENGTH
    ? plain
    : `sha256-${createHash('sha256').update(plain).digest('base64url')}`;
}

/** Percent-encodes the UTF-8 bytes of a character. A lone surrogate counts as U+FFFD. */
function encode(character: string): string {
  return [...Buffer.from(character)]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('');
}
