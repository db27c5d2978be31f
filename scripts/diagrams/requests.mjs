import { arrow, box, diagram, text } from './draw.mjs';

/** The steps of a request for a file. */
export function file() {
  return diagram('The steps of one request for a file', 356, [
    box('ours', { x: 24, y: 24, width: 200, height: 56 }, 'Check the path', 'one spelling, no dotfiles'),
    box('stop', { x: 24, y: 124, width: 200, height: 40 }, 'next() or 404'),
    box('ours', { x: 280, y: 24, width: 200, height: 56 }, 'Stat the file', 'inside the root, regular'),
    box('stop', { x: 280, y: 124, width: 200, height: 40 }, 'next() or 404'),
    box(
      'ours',
      { x: 536, y: 24, width: 200, height: 56 },
      'Find the cache entry',
      'same size, times, inode?',
    ),
    box('ours', { x: 536, y: 120, width: 200, height: 56 }, 'Read and hash', 'ETag from the bytes'),
    box(
      'ours',
      { x: 280, y: 220, width: 456, height: 50 },
      'Compare If-None-Match, If-Match, Range',
      'RFC 9110 §13, §14',
    ),
    box('box', { x: 280, y: 306, width: 140, height: 36 }, '304, no body'),
    box('box', { x: 438, y: 306, width: 140, height: 36 }, '206 ranges'),
    box('box', { x: 596, y: 306, width: 140, height: 36 }, '200 from memory'),
    arrow([
      [226, 52],
      [276, 52],
    ]),
    arrow([
      [482, 52],
      [532, 52],
    ]),
    arrow([
      [124, 82],
      [124, 120],
    ]),
    arrow([
      [380, 82],
      [380, 120],
    ]),
    arrow([
      [700, 82],
      [700, 116],
    ]),
    text(692, 104, 'no', 'note', 'end'),
    arrow([
      [636, 178],
      [636, 216],
    ]),
    arrow([
      [570, 82],
      [570, 102],
      [510, 102],
      [510, 216],
    ]),
    text(502, 118, 'yes', 'note', 'end'),
    arrow([
      [350, 272],
      [350, 302],
    ]),
    arrow([
      [508, 272],
      [508, 302],
    ]),
    arrow([
      [666, 272],
      [666, 302],
    ]),
  ]);
}

/** The steps of an upload. */
export function upload() {
  return diagram('The steps of one upload', 296, [
    box('box', { x: 16, y: 106, width: 128, height: 70 }, 'Request', 'operations, map,', 'files'),
    box(
      'ours',
      { x: 196, y: 106, width: 160, height: 70 },
      'Parse and check',
      'limits, cross-site,',
      'query, paths',
    ),
    box('stop', { x: 196, y: 16, width: 160, height: 44 }, '400, 403, 413, 415', 'no resolver has run'),
    box('ours', { x: 408, y: 56, width: 160, height: 54 }, 'Memory', 'up to 256 KiB per file'),
    box('ours', { x: 408, y: 172, width: 160, height: 54 }, 'Unlinked file', 'no name, no trace'),
    box('box', { x: 620, y: 106, width: 124, height: 70 }, 'Resolver', '`file.saveTo()`', '`file.stream()`'),
    arrow([
      [146, 141],
      [192, 141],
    ]),
    arrow([
      [276, 104],
      [276, 64],
    ]),
    arrow([
      [358, 131],
      [404, 84],
    ]),
    arrow([
      [358, 151],
      [404, 198],
    ]),
    arrow([
      [570, 84],
      [616, 126],
    ]),
    arrow([
      [570, 198],
      [616, 156],
    ]),
    text(
      380,
      268,
      'Success, error, abort or SIGKILL: memory and files are released with the response.',
      'note',
      'middle',
    ),
  ]);
}
