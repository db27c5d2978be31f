import { arrow, box, diagram, frame, text } from './draw.mjs';
import { file, upload } from './requests.mjs';

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
    ours(rows[0], 62, '`staticFiles`', 'strong ETags, ranges, cache'),
    ours(rows[1] - 12, 94, '`graphqlHTTP`', 'limits, cache, compiled engine', 'uploads, streams, GraphiQL'),
    ours(rows[2], 62, '`attachSubscriptions`', 'two subprotocols, shared execution'),
    right(rows[0], 'Files', 'folder, memory, source'),
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
    text(390, rows[2] - 12, 'same context'),
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
