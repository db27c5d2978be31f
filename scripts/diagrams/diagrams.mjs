import { arrow, box, diagram, frame, text } from './draw.mjs';

/** The diagrams by the names of their files in docs/images. */
export const DIAGRAMS = {
  'diagram-parts': parts(),
  'diagram-operation': operation(),
  'diagram-file': file(),
  'diagram-upload': upload(),
  'diagram-events': events(),
};

function parts() {
  const rows = [70, 170, 280];
  const left = (y, ...words) => box('box', { x: 16, y, width: 158, height: 62 }, ...words);
  const ours = (y, height, ...words) => box('ours', { x: 254, y, width: 252, height }, ...words);
  const right = (y, ...words) => box('box', { x: 586, y, width: 158, height: 62 }, ...words);
  const across = (y, ends) => [
    arrow(
      [
        [176, y],
        [250, y],
      ],
      ends,
    ),
    arrow(
      [
        [510, y],
        [582, y],
      ],
      ends,
    ),
  ];
  return diagram('The parts of espalier in an Express app', 372, [
    frame({ x: 226, y: 20, width: 308, height: 336 }, '`createServer(app)`'),
    text(520, 42, 'your Express app', 'note', 'end'),
    left(rows[0], 'Browsers', 'pages, scripts, media'),
    left(rows[1] + 4, 'GraphQL clients', 'and GraphiQL'),
    left(rows[2], 'Live clients', 'WebSocket, SSE'),
    ours(rows[0], 62, '`staticFiles`', 'strong ETags, ranges, memory cache'),
    ours(
      rows[1] - 12,
      94,
      '`graphqlHTTP`',
      'limits, document cache, compiled engine',
      'uploads, event streams, GraphiQL',
    ),
    ours(rows[2], 62, '`attachSubscriptions`', 'two subprotocols, shared execution'),
    right(rows[0], 'Files', 'folder, zip, memory'),
    right(rows[1] + 4, 'Your schema', 'resolvers, context'),
    right(rows[2], '`createPubSub`', 'Redis, other processes'),
    across(rows[0] + 31, 'both'),
    across(rows[1] + 35, 'both'),
    across(rows[2] + 31, 'both'),
    arrow(
      [
        [380, rows[1] + 86],
        [380, rows[2] - 4],
      ],
      'both',
    ),
    text(390, rows[2] - 12, 'same context, limits, cache'),
    arrow(
      [
        [665, rows[1] + 70],
        [665, rows[2] - 4],
      ],
      'both',
    ),
  ]);
}

function operation() {
  const steps = [
    ['Read the request', 'JSON, URL or multipart; size and time limits'],
    ['Prepare the document', 'cached by its text; else parse, limit, validate'],
    ['Check the method and the site', 'mutations over GET, subscriptions'],
    ['Create the context', 'your function'],
    ['`onOperation`', 'your function: refuse, or add extensions'],
    ['Execute', 'compiled plan writes JSON bytes; your resolvers'],
    ['Send the response', 'one write, status by media type'],
  ];
  const refusals = [
    '400, 408, 413, 415',
    '400 or errors with 200',
    '403 or 405',
    'error to next()',
    'your GraphQLError',
    'masked errors',
  ];
  const top = (index) => 20 + index * 68;
  return diagram('The steps of one GraphQL operation', top(steps.length) + 2, [
    steps.map(([title, ...notes], index) =>
      box(
        index === 3 || index === 4 ? 'box' : 'ours',
        { x: 150, y: top(index), width: 330, height: 50 },
        title,
        ...notes,
      ),
    ),
    steps.slice(1).map((_, index) =>
      arrow([
        [315, top(index) + 52],
        [315, top(index + 1) - 2],
      ]),
    ),
    refusals.map((title, index) => box('stop', { x: 560, y: top(index) + 8, width: 176, height: 34 }, title)),
    refusals.map((_, index) =>
      arrow([
        [482, top(index) + 25],
        [556, top(index) + 25],
      ]),
    ),
    text(24, top(0) + 29, 'request'),
    arrow([
      [76, top(0) + 25],
      [146, top(0) + 25],
    ]),
    text(24, top(6) + 29, 'response'),
    arrow([
      [146, top(6) + 25],
      [82, top(6) + 25],
    ]),
  ]);
}

function file() {
  return diagram('The steps of one request for a file', 356, [
    box(
      'ours',
      { x: 24, y: 24, width: 200, height: 56 },
      'Check the path',
      'one spelling per file, no dotfiles',
    ),
    box('stop', { x: 24, y: 124, width: 200, height: 40 }, 'next() or 404'),
    box(
      'ours',
      { x: 280, y: 24, width: 200, height: 56 },
      'Stat the file',
      'inside the root, a regular file',
    ),
    box('stop', { x: 280, y: 124, width: 200, height: 40 }, 'next() or 404'),
    box(
      'ours',
      { x: 536, y: 24, width: 200, height: 56 },
      'Find the cache entry',
      'size, times and inode equal?',
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
    text(560, 118, 'yes', 'note', 'end'),
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

function upload() {
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

function events() {
  const process = (y, name) => [
    frame({ x: 216, y, width: 528, height: 116 }, name),
    box('ours', { x: 232, y: y + 38, width: 128, height: 58 }, '`createPubSub`', 'one connection'),
    box('ours', { x: 400, y: y + 38, width: 160, height: 58 }, 'Group', '1 execution, 1 JSON'),
    box('box', { x: 606, y: y + 38, width: 122, height: 58 }, '1000 sockets', 'queue per client'),
    arrow([
      [362, y + 67],
      [396, y + 67],
    ]),
    arrow([
      [562, y + 55],
      [602, y + 55],
    ]),
    arrow([
      [562, y + 67],
      [602, y + 67],
    ]),
    arrow([
      [562, y + 79],
      [602, y + 79],
    ]),
  ];
  return diagram('How an event reaches the sockets of several processes', 296, [
    box('box', { x: 16, y: 16, width: 140, height: 62 }, 'Mutation', '`publish(topic, …)`'),
    box('box', { x: 16, y: 117, width: 140, height: 62 }, 'Redis', 'history of events'),
    process(16, 'Process 1'),
    process(164, 'Process 2'),
    arrow([
      [86, 80],
      [86, 113],
    ]),
    arrow([
      [158, 138],
      [190, 138],
      [190, 83],
      [228, 83],
    ]),
    arrow([
      [158, 158],
      [190, 158],
      [190, 231],
      [228, 231],
    ]),
  ]);
}
