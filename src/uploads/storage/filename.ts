// Control characters, lone surrogates, line and paragraph separators, and bidirectional controls, which show `gnp.exe` as `exe.png`.
const UNSAFE = /[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/gu;
const MAX_BYTES = 255;
const MAX_EXTENSION = 32;

/**
 * Makes a filename from the client safe for display, storage and headers. multer has decoded the `%0D%0A` of browsers
 * to line breaks, which would be header injection in a Content-Disposition.
 */
export function cleanFilename(raw: string): string {
  const text = raw.replace(UNSAFE, '');
  const base = text.slice(Math.max(text.lastIndexOf('/'), text.lastIndexOf('\\')) + 1).trim();
  if (base === '' || base === '.' || base === '..') return 'unnamed';
  return Buffer.byteLength(base) <= MAX_BYTES ? base : shorten(base);
}

/** Cuts to 255 bytes of UTF-8, between characters, and keeps a short extension. */
function shorten(name: string): string {
  const dot = name.lastIndexOf('.');
  const extension = dot > 0 && name.length - dot <= MAX_EXTENSION ? name.slice(dot) : '';
  let room = MAX_BYTES - Buffer.byteLength(extension);
  let stem = '';
  for (const character of name) {
    room -= Buffer.byteLength(character);
    if (room < 0) break;
    stem += character;
  }
  return stem + extension;
}
