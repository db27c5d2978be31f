import { createHash } from 'node:crypto';
import type { Reply } from '../http/reply.ts';

/** The style sheet of the page. */
const STYLE = `
:root {
  color-scheme: light dark;
  --page: #f4f5f2; --card: #ffffff; --line: #dfe3da; --text: #1d231c; --soft: #5d6759;
  --accent: #2e7d4f; --error: #c2333a; --warn: #a66a00; --track: #e8ebe4;
  --query: #1f6f8b; --mutation: #8a4b08; --subscription: #6b3fa0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12160f; --card: #1b211a; --line: #2e372c; --text: #e6ebe2; --soft: #9aa695;
    --accent: #6cc48d; --error: #ff7b80; --warn: #e6b455; --track: #2a3228;
    --query: #78c4de; --mutation: #eab077; --subscription: #c2a2ee;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.45 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif;
  font-variant-numeric: tabular-nums;
}
main, header { max-width: 1180px; margin: 0 auto; padding: 0 20px; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 16px; padding-top: 22px; padding-bottom: 14px; }
h1 { margin: 0; font-size: 22px; letter-spacing: -.01em; }
h2 { margin: 0 0 10px; font-size: 14px; font-weight: 650; }
#process { color: var(--soft); }
#filter { margin-left: auto; width: 190px; padding: 4px 10px; font: inherit; font-size: 13px; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: 7px; }
#status { display: flex; align-items: center; gap: 8px; color: var(--soft); }
#status::before { content: ''; width: 9px; height: 9px; border-radius: 50%; background: var(--accent); }
#status[data-state=paused]::before { background: var(--warn); }
#status[data-state=failed]::before { background: var(--error); }
button {
  font: inherit; font-size: 13px; color: inherit; background: var(--card); border: 1px solid var(--line);
  border-radius: 7px; padding: 4px 12px; cursor: pointer;
}
button:hover { border-color: var(--soft); }
th button { padding: 0; border: 0; background: none; color: inherit; border-radius: 3px; }
th button:hover { color: var(--text); }
[aria-sort] button { color: var(--text); }
[aria-sort=ascending] button::after { content: ' \\2191'; }
[aria-sort=descending] button::after { content: ' \\2193'; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
main { display: grid; grid-template-columns: repeat(12, minmax(0, 1fr)); gap: 14px; padding-bottom: 40px; }
section { grid-column: span 12; background: var(--card); border: 1px solid var(--line); border-radius: 11px; padding: 16px 18px; min-width: 0; }
#tiles { grid-column: span 12; display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); gap: 14px; margin: 0; }
#tiles > div { background: var(--card); border: 1px solid var(--line); border-radius: 11px; padding: 12px 16px; min-width: 0; }
#tiles dt { color: var(--soft); font-size: 13px; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
#tiles dd { margin: 2px 0 0; font-size: 25px; font-weight: 640; letter-spacing: -.02em; white-space: nowrap; }
.bad { color: var(--error); }
#history svg { display: block; width: 100%; height: 110px; }
#history rect { fill: var(--accent); }
#history rect.error { fill: var(--error); }
#history rect:not(.hover) { pointer-events: none; }
#history rect.hover { fill: transparent; }
#history rect.hover:hover { fill: var(--track); }
#history line { stroke: var(--line); pointer-events: none; }
.axis { display: flex; justify-content: space-between; color: var(--soft); font-size: 12px; padding-top: 4px; }
.half { grid-column: span 6; }
.third { grid-column: span 4; }
.scroll { overflow-x: auto; margin: 0 -18px; padding: 0 18px; }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; font-weight: 500; font-size: 13px; color: var(--soft); white-space: nowrap; }
th, td { padding: 7px 12px 7px 0; border-bottom: 1px solid var(--line); vertical-align: middle; }
tbody tr:last-child td { border-bottom: 0; }
th:last-child, td:last-child { padding-right: 0; }
.number { text-align: right; white-space: nowrap; }
.name { width: 34%; min-width: 130px; max-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.name code { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.message { color: var(--soft); width: 40%; min-width: 160px; overflow-wrap: anywhere; }
.badge { display: inline-block; font-size: 11px; font-weight: 600; letter-spacing: .02em; width: 92px; color: var(--soft); }
.badge.query { color: var(--query); } .badge.mutation { color: var(--mutation); } .badge.subscription { color: var(--subscription); }
.bar { display: block; height: 7px; border-radius: 4px; background: var(--track); overflow: hidden; }
.bar > i { display: block; height: 100%; border-radius: 4px; background: var(--accent); width: 0; }
.bar > i.full { background: var(--error); }
td .bar { width: 96px; margin-left: 10px; }
.meters { display: grid; gap: 13px; }
.meters .label { display: flex; justify-content: space-between; gap: 10px; padding-bottom: 4px; }
.meters em { font-style: normal; color: var(--soft); white-space: nowrap; }
dl.pairs { display: grid; grid-template-columns: 1fr auto; gap: 6px 14px; margin: 0; }
dl.pairs dt { color: var(--soft); } dl.pairs dd { margin: 0; text-align: right; }
.empty { color: var(--soft); margin: 0; }
footer { max-width: 1180px; margin: 0 auto; padding: 0 20px 30px; color: var(--soft); font-size: 13px; }
@media (max-width: 900px) {
  #tiles { grid-template-columns: repeat(3, minmax(0, 1fr)); }
  .half, .third { grid-column: span 12; }
}
@media (max-width: 560px) {
  header, main, footer { padding-left: 12px; padding-right: 12px; }
  #filter { order: 1; width: 100%; font-size: 16px; }
  #status { margin-left: auto; }
  main, #tiles { gap: 10px; }
  #tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  #tiles dd { font-size: 21px; }
  section { padding: 13px 14px; }
  .scroll { margin: 0 -14px; padding: 0 14px; }
  .wide { display: none; }
  .badge { display: block; width: auto; }
  table { font-size: 14px; }
  th, td { padding-right: 8px; }
  .name { min-width: 84px; }
  .message { min-width: 110px; }
}
`;

/** The functions of the page that format numbers. */
const FORMAT = `
const whole = new Intl.NumberFormat('en');
const count = (value) => (value < 1e5 ? whole.format(value) : scaled(value, 1000, ['', 'k', 'M', 'G']));
const bytes = (value) => scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']);
const percent = (share) => (share >= 0.9995 || share === 0 ? share * 100 : (share * 100).toFixed(1)) + ' %';

function scaled(value, base, units) {
  let unit = 0;
  while (value >= base && unit < units.length - 1) { value /= base; unit++; }
  return (unit === 0 ? whole.format(Math.round(value)) : value.toFixed(value < 10 ? 1 : 0)) + ' ' + units[unit];
}

function duration(ms) {
  if (ms === null) return '\\u2013';
  if (ms < 1) return (ms * 1000).toFixed(0) + ' µs';
  if (ms < 1000) return ms.toFixed(ms < 10 ? 1 : 0) + ' ms';
  return (ms / 1000).toFixed(1) + ' s';
}

function age(seconds) {
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const first = parts.findIndex(([size]) => seconds >= size);
  if (first === -1) return '0 s';
  return parts.slice(first, first + 2).map(([size, unit], index) => {
    const value = Math.floor((index === 0 ? seconds : seconds % parts[first][0]) / size);
    return value + '\\u00a0' + unit;
  }).join(' ');
}
`;

/** The script of the page. It requests the figures every two seconds while the page is visible. */
const SCRIPT: string = `
'use strict';
${FORMAT}
const PERIOD = 2000;
const byId = (id) => document.getElementById(id);
let paused = false;
let timer;
let latest;
/** The column by which each table is sorted; without one the order of the server is kept. */
const orders = {};

/** Creates an element; children are elements or texts. */
function create(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function bar(share) {
  const fill = create('i', { className: share > 0.9 ? 'full' : '' });
  fill.style.width = Math.min(100, Math.max(0, share * 100)) + '%';
  return create('span', { className: 'bar' }, fill);
}

function showTiles({ requests, history, live, eventLoop }) {
  const recent = history.requests.slice(-11, -1);
  const rate = recent.reduce((sum, value) => sum + value, 0) / recent.length;
  const share = requests.count === 0 ? 0 : requests.errors / requests.count;
  const tiles = [
    ['Operations / s', rate < 10 ? rate.toFixed(1) : count(Math.round(rate))],
    ['Median, p50', duration(requests.p50)],
    ['Slowest 1 %, p99', duration(requests.p99)],
    ['With errors', percent(share), share > 0.05],
    ['Sockets and streams', count(live.connections)],
    ['Event loop, p99', duration(eventLoop.p99), eventLoop.p99 > 100],
  ];
  byId('tiles').replaceChildren(...tiles.map(([name, value, bad]) =>
    create('div', {}, create('dt', { textContent: name }), create('dd', { textContent: value, className: bad ? 'bad' : '' }))));
}

function showHistory({ requests, errors }) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const most = Math.max(5, ...requests);
  svg.setAttribute('viewBox', '0 0 ' + requests.length * 10 + ' 100');
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', 'Operations per second in the last two minutes, at most ' + most);
  const draw = (name, attributes, title) => {
    const shape = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
    if (title !== undefined)
      shape.append(Object.assign(document.createElementNS('http://www.w3.org/2000/svg', 'title'), { textContent: title }));
    svg.append(shape);
  };
  for (const y of [1, 50, 99.5]) draw('line', { x1: 0, x2: requests.length * 10, y1: y, y2: y, 'vector-effect': 'non-scaling-stroke' });
  requests.forEach((value, index) => {
    // The whole height of a second reacts to the pointer.
    const ago = requests.length - 1 - index;
    const text = count(value) + ' operations, ' + count(errors[index]) + ' with errors, ' + (ago === 0 ? 'now' : age(ago) + ' ago');
    draw('rect', { class: 'hover', x: index * 10, width: 10, y: 0, height: 100 }, text);
    if (value === 0) return;
    const height = Math.max(2, (value / most) * 98);
    const failed = Math.min(height, (errors[index] / value) * height);
    draw('rect', { x: index * 10 + 1, width: 8, y: 100 - height, height: height - failed });
    if (failed > 0) draw('rect', { class: 'error', x: index * 10 + 1, width: 8, y: 100 - failed, height: failed });
  });
  byId('chart').replaceChildren(svg);
  byId('most').textContent = 'at most ' + count(most) + ' per second';
}

// The cells of a table: a text, the exact value that it shows when the pointer is over it, and the value that sorts it.
const cell = (text, title, sortBy, className = 'number') => create('td', { className, title, sortBy }, text);
const counted = (value, className) => cell(count(value), whole.format(value), value, className);
const timed = (ms, className) => cell(duration(ms), ms === null ? '' : ms.toFixed(3) + ' ms', ms ?? -1, className);
const ageOf = (last, time) =>
  cell(age(Math.max(0, (Date.parse(time) - Date.parse(last)) / 1000)) + ' ago', new Date(last).toLocaleString(), -Date.parse(last));
const named = (text, className = 'name') => create('td', { className, title: text }, create('code', { textContent: text }));
const described = (text) => create('td', { className: 'message', title: text, textContent: text });

function showOperations({ operations }) {
  const slowest = Math.max(1, ...operations.map(({ p99 }) => p99 ?? 0));
  const length = (ms) => (ms === null ? 0 : Math.log1p(ms) / Math.log1p(slowest) * 0.9);
  fill('operations', operations, ({ type, name, requests, errors, p50, p99, max, total }) => [
    create('td', { className: 'name', title: name, sortBy: name },
      create('span', { className: 'badge ' + type, textContent: type }), create('code', { textContent: name })),
    counted(requests),
    counted(errors, 'number' + (errors > 0 ? ' bad' : '')),
    timed(p50),
    timed(p99),
    create('td', { className: 'wide' }, bar(length(p99))),
    timed(max, 'number wide'),
    counted(total, 'number wide'),
  ]);
}

function showErrors({ errors, time }) {
  fill('errors', errors, (error) => [
    named(error.code),
    counted(error.count),
    described(error.message),
    named(error.operation ?? '', 'name wide'),
    ageOf(error.last, time),
  ]);
}

function showDeprecated({ deprecated, time }) {
  byId('deprecated').hidden = deprecated === null;
  fill('deprecated', deprecated ?? [], ({ coordinate, client, count: operations, last }) => [
    named(coordinate),
    create('td', { className: 'name', title: client, textContent: client }),
    counted(operations),
    ageOf(last, time),
  ]);
}

function showTools({ tools }) {
  byId('tools').hidden = tools === null;
  fill('tools', tools ?? [], ({ name, description }) => [
    named(name),
    described(description),
  ]);
}

/** Fills a table with the rows that match the filter, or shows the text for an empty one. */
function fill(id, rows, cellsOf) {
  const section = byId(id);
  const filter = byId('filter').value.trim().toLowerCase();
  const shown = rows.map((row) => create('tr', {}, ...cellsOf(row)))
    .filter((row) => row.textContent.toLowerCase().includes(filter));
  const order = orders[id];
  if (order !== undefined) {
    const key = ({ cells }) => cells[order.column].sortBy ?? cells[order.column].textContent;
    const compare = (a, b) => (typeof a === 'number' ? a - b : a.localeCompare(b));
    shown.sort((one, other) => compare(key(one), key(other)) * (order.descending ? -1 : 1));
  }
  section.querySelector('tbody').replaceChildren(...shown);
  section.querySelector('.scroll').hidden = shown.length === 0;
  const empty = section.querySelector('.empty');
  empty.hidden = shown.length > 0;
  empty.dataset.text ??= empty.textContent;
  empty.textContent = rows.length > 0 ? 'Nothing matches the filter.' : empty.dataset.text;
}

/** Sorts a table by a column: numbers with the largest first, names from A; a second click turns the order around. */
function sortBy(heading) {
  const { id } = heading.closest('section');
  const column = heading.cellIndex;
  const before = orders[id];
  const descending = before?.column === column ? !before.descending : heading.classList.contains('number');
  orders[id] = { column, descending };
  for (const each of heading.parentElement.cells) each.removeAttribute('aria-sort');
  heading.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
  if (latest !== undefined) show(latest);
}

function meter(name, share, value) {
  return create('div', {}, create('span', { className: 'label' }, name, create('em', { textContent: value })), bar(share));
}

function showCaches({ lookups, documents, responses, files, uploads }) {
  const rates = Object.entries({ Documents: lookups.documents, Responses: lookups.responses, 'Static files': lookups.files })
    .filter(([name, { hits, misses }]) => name !== 'Responses' || hits + misses > 0);
  byId('rates').replaceChildren(...rates.map(([name, { hits, misses }]) => {
    const all = hits + misses;
    const share = all === 0 ? 0 : hits / all;
    const element = meter(name, share, all === 0 ? 'no lookups' : percent(share) + ' of ' + count(all));
    element.querySelector('i').className = '';
    return element;
  }));
  const budgets = Object.entries({ Documents: documents, Responses: responses, 'Static files': files, Uploads: uploads });
  byId('budgets').replaceChildren(...budgets.filter(([, { maxBytes }]) => maxBytes > 0 || maxBytes === null).map(
    ([name, { bytes: used, maxBytes }]) =>
      meter(name, maxBytes === null ? 0 : used / maxBytes, bytes(used) + (maxBytes === null ? '' : ' of ' + bytes(maxBytes)))));
}

function showPairs(id, pairs) {
  byId(id).replaceChildren(...pairs.flatMap(([name, value]) =>
    [create('dt', { textContent: name }), create('dd', { textContent: value })]));
}

function showNumbers({ requests, live, memory, eventLoop, statuses, uploaded, pubsub }) {
  const responses = (counts) => Object.entries(counts).map(([status, number]) => status + ': ' + count(number)).join(', ') || '\\u2013';
  showPairs('live', [
    ['Operations in progress', count(requests.active)], ['Sockets and event streams', count(live.connections)],
    ['Their operations', count(live.operations)], ['Source streams', count(live.sources)],
    ['Shared executions', count(live.groups)], ['Sources that do not end', count(live.unreleased)],
  ]);
  showPairs('process-numbers', [
    ['Memory, resident', bytes(memory.rss)], ['Heap in use', bytes(memory.heapUsed)], ['Buffers', bytes(memory.arrayBuffers)],
    ['Event loop in use', percent(eventLoop.utilization)], ['Event loop delay, mean', duration(eventLoop.mean)],
    ['Event loop delay, longest', duration(eventLoop.max)],
  ]);
  showPairs('traffic', [
    ['GraphQL responses', responses(statuses.graphql)], ['Static files', responses(statuses.files)],
    ['Uploads', count(uploaded.files) + ' files, ' + bytes(uploaded.bytes)], ['Uploads refused', count(uploaded.failed)],
    ['Events published', count(pubsub.published)], ['Events delivered', count(pubsub.delivered)],
  ]);
}

function show(figures) {
  latest = figures;
  const { pid, node, uptime } = figures.process;
  byId('process').textContent = 'process ' + pid + ' · Node.js ' + node.slice(1) + ' · up ' + age(uptime);
  showTiles(figures);
  showHistory(figures.history);
  showOperations(figures);
  showErrors(figures);
  showDeprecated(figures);
  showTools(figures);
  showCaches(figures);
  showNumbers(figures);
}

function setStatus(state, text) {
  byId('status').dataset.state = state;
  byId('state').textContent = text;
}

async function update() {
  clearTimeout(timer);
  if (paused) return;
  try {
    const response = await fetch(location.pathname + location.search, { headers: { accept: 'application/json' } });
    if (!response.ok) throw new Error('status ' + response.status);
    show(await response.json());
    if (!paused) setStatus('live', 'live');
  } catch (error) {
    if (!paused) setStatus('failed', 'no connection (' + error.message + ')');
  }
  if (!document.hidden) timer = setTimeout(update, PERIOD);
}

byId('pause').addEventListener('click', () => {
  paused = !paused;
  byId('pause').textContent = paused ? 'Continue' : 'Pause';
  byId('pause').setAttribute('aria-pressed', String(paused));
  if (paused) setStatus('paused', 'paused');
  update();
});
byId('filter').addEventListener('input', () => { if (latest !== undefined) show(latest); });
for (const button of document.querySelectorAll('th button')) button.addEventListener('click', () => sortBy(button.parentElement));
document.addEventListener('visibilitychange', () => { if (!document.hidden) update(); });
update();
`;

const FAVICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='7' " +
  "fill='%232e7d4f'/%3E%3Cg stroke='%23fff' stroke-width='3.4' stroke-linecap='round'%3E%3Cpath d='M8 23v-6M16 23V9M24 23v-10'/%3E%3C/g%3E%3C/svg%3E";

/** The source of an inline element in a policy (CSP 3 §2.3.1). */
const sourceOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** Allows the inline script and style of the page, its icon, and requests to its own origin. */
const POLICY = [
  "default-src 'none'",
  `script-src ${sourceOf(SCRIPT)}`,
  `style-src ${sourceOf(STYLE)}`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Creates the response with the page, which contains everything that it needs. */
export const createPage = (): Reply => ({
  status: 200,
  headers: {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': POLICY,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  },
  body: html(),
});

const heads = (names: readonly string[]): string =>
  names
    .map((name) => {
      const [, text = '', classes = ''] = /^([^.]*)(?:\.(.*))?$/.exec(name) ?? [];
      const attribute = classes === '' ? '' : ` class="${classes.replaceAll('.', ' ')}"`;
      // The bars have no heading.
      if (text === '') return `<td${attribute}></td>`;
      return `<th scope="col"${attribute}><button type="button">${text}</button></th>`;
    })
    .join('');

const table = (
  title: string,
  { id, columns, empty }: { id: string; columns: string[]; empty: string },
): string =>
  `<section id="${id}"><h2>${title}</h2>
<div class="scroll" hidden><table><thead><tr>${heads(columns)}</tr></thead><tbody></tbody></table></div>
<p class="empty">${empty}</p></section>`;

const OPERATIONS = table('Operations in the last five minutes', {
  id: 'operations',
  columns: [
    'Operation',
    'Requests.number',
    'Errors.number',
    'p50.number',
    'p99.number',
    '.wide',
    'Longest.number.wide',
    'Since start.number.wide',
  ],
  empty: 'No operation yet.',
});

const ERRORS = table('Errors', {
  id: 'errors',
  columns: ['Code', 'Count.number', 'Last message', 'Operation.wide', 'Last.number'],
  empty: 'No errors since the start.',
});

const DEPRECATED = table('Deprecated fields in use', {
  id: 'deprecated',
  columns: ['Coordinate', 'Client', 'Operations.number', 'Last.number'],
  empty: 'No operation since the start has used one.',
});

const TOOLS = table('Tools for agents', {
  id: 'tools',
  columns: ['Tool', 'Description'],
  empty: 'No document is a tool.',
});

const html = (): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>espalier: live figures</title>
<link rel="icon" href="${FAVICON}">
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>espalier</h1>
<span id="process"></span>
<input id="filter" type="search" placeholder="Filter the tables" aria-label="Filter the tables">
<span id="status" data-state="live" role="status"><span id="state">loading</span><button id="pause" type="button" aria-pressed="false">Pause</button></span>
</header>
<main>
<dl id="tiles"></dl>
<section id="history"><h2>Operations per second</h2><div id="chart"></div>
<div class="axis"><span>two minutes ago</span><span id="most"></span><span>now</span></div></section>
${OPERATIONS}
${ERRORS}
${DEPRECATED}
${TOOLS}
<section class="half"><h2>Cache hits</h2><div id="rates" class="meters"></div></section>
<section class="half"><h2>Memory budgets</h2><div id="budgets" class="meters"></div></section>
<section class="third"><h2>In progress</h2><dl id="live" class="pairs"></dl></section>
<section class="third"><h2>Process</h2><dl id="process-numbers" class="pairs"></dl></section>
<section class="third"><h2>Since the start</h2><dl id="traffic" class="pairs"></dl></section>
</main>
<footer>Figures of this process only. <noscript>This page needs JavaScript; </noscript>As JSON: GET this page with <code>Accept: application/json</code>.</footer>
<script>${SCRIPT}</script>
</body>
</html>
`;
