import { median } from './median.mjs';

/** A result as Markdown: heading and versions where it has them, then a table for each load. */
export function tables(result) {
  const parts = [];
  if (result.title !== undefined)
    parts.push(`## ${result.title}`, wrap(result.about ?? ''), wrap(conditions(result)));
  for (const load of result.loads) parts.push(`### ${load.name}`, lengthOf(load, result), table(load));
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

const COLUMNS = 110;

/** A paragraph of Markdown, broken into lines. */
function wrap(text) {
  const lines = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (longer.length > COLUMNS) lines.push(line);
    line = longer.length > COLUMNS ? word : longer;
  }
  return [...lines, line].join('\n');
}

/** The rounds of a load that was measured with more or fewer rounds than the others of its topic. */
function lengthOf(load, { loads }) {
  const rounds = roundsOf(load);
  return rounds === roundsOf(loads[0]) ? '' : `${rounds} rounds.`;
}

const roundsOf = (load) => load?.rows[0]?.rounds.length;

function conditions({ date, machine, node, packages, loads }) {
  const versions = Object.entries(packages).map(([name, version]) => `${name} ${version}`);
  const rounds = roundsOf(loads[0]);
  const length = rounds === undefined ? '' : ` ${rounds} rounds.`;
  return `${date}.${length} Node ${node}; ${machine.cpu}, ${machine.memory}, ${machine.system}. ${versions.join(', ')}.`;
}

const HEADINGS = {
  rssMiB: 'RSS, MiB',
  peakRssMiB: 'peak RSS, MiB',
  rssGrowthMiB: 'RSS growth, MiB',
  rssKiBPerSocket: 'RSS a socket, KiB',
  readersLeft: 'readers left',
  outOfOrder: 'out of order',
};

function table({ unit, ratios, columns, rows }) {
  const peers = ratios.filter((name) => rows.some((row) => row.name === name));
  const head = [
    '',
    `CPU µs per ${unit}, median (least)`,
    `${unit}s/s`,
    ...peers.map((name) => `÷ ${name}`),
    ...columns.map((name) => HEADINGS[name] ?? name),
  ];
  const lines = rows.map((row) => [
    row.name,
    `${figure(row.cpu)} (${figure(row.cpuMin)})`,
    figure(row.perSecond),
    ...peers.map((name) =>
      ratio(
        row,
        rows.find((other) => other.name === name),
      ).toFixed(2),
    ),
    ...columns.map((name) => figure(row[name])),
  ]);
  return aligned([head, ...lines]);
}

/** The median of the rounds' ratios: other load on the machine affects both sides of a round. */
export function ratio(row, peer) {
  return median(row.rounds.map((cpu, round) => cpu / peer.rounds[round]));
}

/** A Markdown table that reads well in a terminal too. */
function aligned(lines) {
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length), 3));
  const row = (cells) =>
    `| ${cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join(' | ')} |`;
  const rule = `|${widths.map((width, at) => (at === 0 ? `-${'-'.repeat(width)}-` : `-${'-'.repeat(width)}:`)).join('|')}|`;
  return [row(lines[0]), rule, ...lines.slice(1).map(row)].join('\n');
}

function figure(value) {
  if (value === undefined) return '';
  if (value >= 1000) return String(Math.round(value));
  return value >= 100 ? value.toFixed(0) : value.toFixed(1);
}
