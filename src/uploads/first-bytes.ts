import type { UploadedFileInfo } from '../../types/uploads.ts';
import { isListOf, type OptionScope, type Rule, wrongOption } from '../options/rules.ts';
import { isFunction, isString } from '../options/values.ts';

// A table of our own: the package file-type knows hundreds of types, but loads asynchronously and reads more than the
// first bytes. These are the types that applications accept and that browsers show.

/** The first bytes of a file that say its type, unless it is shorter. */
export const FIRST_BYTES = 64;

/** A text, one character for each byte, and where it begins. */
type Mark = readonly [at: number | 'any', ...texts: readonly string[]];

/** Types by their marks: each has to be there, with one of its texts. */
const SIGNATURES: readonly (readonly [type: string, ...marks: readonly Mark[]])[] = [
  ['image/png', [0, '\x89PNG\r\n\x1a\n']],
  ['image/jpeg', [0, '\xff\xd8\xff']],
  ['image/gif', [0, 'GIF87a', 'GIF89a']],
  ['image/webp', [0, 'RIFF'], [8, 'WEBPVP8']],
  ['image/tiff', [0, 'II*\0', 'MM\0*']],
  ['image/bmp', [0, 'BM'], [14, '\x0c\0\0\0', '\x28\0\0\0', '\x6c\0\0\0', '\x7c\0\0\0']],
  ['image/x-icon', [0, '\0\0\x01\0'], [5, '\0']],
  // EBML (RFC 8794): the name of the format is within the header.
  ['video/webm', [0, '\x1aE\xdf\xa3'], ['any', 'webm']],
  ['video/x-matroska', [0, '\x1aE\xdf\xa3'], ['any', 'matroska']],
  ['audio/ogg', [0, 'OggS'], [28, 'OpusHead', '\x01vorbis', '\x7fFLAC', 'Speex']],
  ['video/ogg', [0, 'OggS'], [28, '\x80theora']],
  ['audio/mpeg', [0, 'ID3', '\xff\xfb', '\xff\xf3', '\xff\xf2', '\xff\xfa']],
  ['audio/aac', [0, '\xff\xf1', '\xff\xf9']],
  ['audio/flac', [0, 'fLaC']],
  ['audio/wav', [0, 'RIFF'], [8, 'WAVE']],
  ['application/pdf', [0, '%PDF-']],
  ['application/zip', [0, 'PK\x03\x04', 'PK\x05\x06']],
  ['application/gzip', [0, '\x1f\x8b\x08']],
];

/** Types by the brands in the first box (ISO/IEC 14496-12 §4.3). Pictures may have another major brand. */
const BRANDS: readonly (readonly [type: string, brand: RegExp])[] = [
  ['image/avif', /^avi[fs]$/],
  ['image/heic', /^he(?:i[cxms]|v[cx])$/],
  ['audio/mp4', /^M4[AB] $/],
  ['video/quicktime', /^qt {2}$/],
  ['video/3gpp', /^3g/],
  ['video/mp4', /^(?:iso\w|mp4[12]|avc1|dash|M4V |MSNV|cmf\w)$/],
];

/** Returns the media type of a file by its first bytes; undefined for text and for all other types. */
export function typeOf(firstBytes: Buffer): string | undefined {
  const text = firstBytes.toString('latin1', 0, FIRST_BYTES);
  if (text.startsWith('ftyp', 4)) return typeOfBrands(text.slice(8, firstBytes.readUInt32BE(0)));
  const isThere = ([at, ...texts]: Mark): boolean =>
    texts.some((each) => (at === 'any' ? text.includes(each) : text.startsWith(each, at)));
  return SIGNATURES.find(([, ...marks]) => marks.every(isThere))?.[0];
}

/** The text has the major brand, its version, and the compatible brands. */
function typeOfBrands(text: string): string | undefined {
  const [major = '', , ...compatible] = text.match(/.{4}/gs) ?? [];
  const first = BRANDS.find(([, brand]) => brand.test(major))?.[0];
  return first ?? BRANDS.find(([, brand]) => compatible.some((each) => brand.test(each)))?.[0];
}

/** The option `accept`: what the application decides by the description of a file, and what by its content. */
export type Accept = readonly string[] | ((file: UploadedFileInfo) => boolean);

/** Whether a media type is in a list such as `['image/*', 'application/pdf']`. */
export const isTypeIn = (types: readonly string[], type: string | undefined): boolean =>
  type !== undefined &&
  types.some((each) => each === type || (each.endsWith('/*') && type.startsWith(each.slice(0, -1))));

const ACCEPTED = "a list of media types such as ['image/*'], or a function of the file";

/** The rule of the option `accept`. */
export const acceptRule: Rule<Accept> = {
  fallback: () => true,
  accepts: (value) => isFunction(value) || (isListOf(isString)(value) && value.length > 0),
  accepted: ACCEPTED,
};

/** Refuses a list with a type that the first bytes of a file do not tell: no file would be accepted for it. */
export function assertTellable(accept: Accept, scope: OptionScope): void {
  if (typeof accept === 'function') return;
  const types = [...SIGNATURES, ...BRANDS].map(([type]) => type).sort();
  const unknown = accept.find((each) => !types.some((type) => isTypeIn([each], type)));
  if (unknown === undefined) return;
  const accepted = `${types.join(', ')}, or a part of them such as image/*; for text and other types, use a function and check the content`;
  throw wrongOption(scope, 'accept', unknown, accepted);
}
