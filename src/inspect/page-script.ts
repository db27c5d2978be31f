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
export const SCRIPT: string = `
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
