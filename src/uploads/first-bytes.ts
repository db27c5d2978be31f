import type { UploadedFileInfo } from '../../types/uploads.ts';
import { oneOrMore, type Rule } from '../options/rules.ts';
import { isFunction, isString } from '../options/values.ts';

// A table of our own: the package file-type knows hundreds of types, but loads asynchronously and reads more than the
// first bytes. These are the types that people upload.

/** The first bytes of a file that say its type, unless it is shorter. */
export const FIRST_BYTES = 64;

/** Where one of the texts has to be; a text has one character for each byte. */
type Mark = readonly [at: number | 'any', ...texts: readonly string[]];

/** Types by all of their marks. The first that fits counts. */
const SIGNATURES: readonly (readonly [type: string, ...marks: readonly Mark[]])[] = [
  ['image/png', [0, '\x89PNG\r\n\x1a\n']],
  ['image/jpeg', [0, '\xff\xd8\xff']],
  ['image/gif', [0, 'GIF87a', 'GIF89a']],
  ['image/webp', [0, 'RIFF'], [8, 'WEBPVP8']],
  // ISO/IEC 14496-12 §4.3: brands follow. Pictures may name theirs after a general one.
  ['image/avif', [4, 'ftyp'], ['any', 'avif', 'avis']],
  ['image/heic', [4, 'ftyp'], ['any', 'heic', 'heix', 'heim', 'heis', 'hevc', 'hevx']],
  ['audio/mp4', [4, 'ftypM4A ', 'ftypM4B ']],
  ['video/quicktime', [4, 'ftypqt  ']],
  ['video/mp4', [4, 'ftyp'], ['any', 'iso', 'mp4', 'avc1', 'dash', 'M4V ']],
  // EBML (RFC 8794): the name of the format is within the header.
  ['video/webm', [0, '\x1aE\xdf\xa3'], ['any', 'webm']],
  ['audio/mpeg', [0, 'ID3', '\xff\xfb', '\xff\xf3', '\xff\xf2', '\xff\xfa']],
  ['audio/ogg', [0, 'OggS'], [28, 'OpusHead', '\x01vorbis', '\x7fFLAC', 'Speex']],
  ['audio/wav', [0, 'RIFF'], [8, 'WAVE']],
  ['audio/flac', [0, 'fLaC']],
  ['application/pdf', [0, '%PDF-']],
  ['application/zip', [0, 'PK\x03\x04', 'PK\x05\x06']],
  ['application/gzip', [0, '\x1f\x8b\x08']],
];

/** Returns the media type of a file by its first bytes; undefined for text and for all other types. */
export function typeOf(firstBytes: Buffer): string | undefined {
  const text = firstBytes.toString('latin1', 0, FIRST_BYTES);
  const isThere = ([at, ...texts]: Mark): boolean =>
    texts.some((each) => (at === 'any' ? text.includes(each) : text.startsWith(each, at)));
  return SIGNATURES.find(([, ...marks]) => marks.every(isThere))?.[0];
}

/** The option `accept`: what the application decides by the description of a file, and what by its content. */
export type Accept = readonly string[] | ((file: UploadedFileInfo) => boolean);

/** Whether a media type is in a list such as `['image/*', 'application/pdf']`. */
export const isTypeIn = (types: readonly string[], type: string | undefined): boolean =>
  type !== undefined &&
  types.some((each) => each === type || (each.endsWith('/*') && type.startsWith(each.slice(0, -1))));

const TYPES = SIGNATURES.map(([type]) => type);

/** No file would be accepted for a type that first bytes do not tell. */
const isTellable = (type: unknown): boolean => isString(type) && TYPES.some((each) => isTypeIn([type], each));

/** The rule of the option `accept`. */
export const acceptRule: Rule<Accept> = {
  fallback: () => true,
  accepts: (value) => isFunction(value) || oneOrMore(isTellable)(value),
  accepted: `a list of ${TYPES.join(', ')}, or a part of them such as ['image/*']; for text and other types a function, and a check of the content`,
};
