// A plot of the headline figures of docs/benchmarks.md: CPU time of other packages as a multiple of espalier's.
import { diagram, text, WIDTH } from './draw.mjs';

const LABEL = 250;
const ROOM = WIDTH - LABEL - 90;
const ROW = 22;

/** The rows of the table: [operation, time of espalier, names and multiples of the others]. */
function headlineRows(markdown) {
  const section = markdown.slice(markdown.indexOf('\n## Headline figures'));
  return [...section.matchAll(/^\| (.+?) \| ([\d.]+ [µm]s) \| (.+?) times \|$/gm)].map(
    ([, operation, time, others]) => ({
      operation: operation.replaceAll('`', ''),
      time,
      others: [...others.matchAll(/([^,]+?) ([\d.]+)(?:, |$)/g)].map(([, name, multiple]) => [
        name,
        Number(multiple),
      ]),
    }),
  );
}

/** A group of bars for each operation in which espalier takes the least time. */
export function headline(markdown) {
  const node = /Headline figures, (Node \d+)/.exec(markdown)?.[1];
  const rows = headlineRows(markdown).filter(({ others }) => others.every(([, multiple]) => multiple > 1));
  const longest = Math.max(...rows.flatMap(({ others }) => others.map(([, multiple]) => multiple)));
  const elements = [
    text(20, 30, `Server CPU time as a multiple of espalier's, ${node}`, 'title'),
    text(20, 48, 'Shorter is better'),
  ];
  let y = 62;
  for (const { operation, time, others } of rows) {
    elements.push(text(20, y + 20, operation, 'title'));
    y += 30;
    for (const [name, multiple] of [['espalier', 1], ...others]) {
      const width = (multiple / longest) * ROOM;
      const note = name === 'espalier' ? time : `${multiple.toFixed(1)} times`;
      elements.push(...bar(name.replaceAll('`', ''), y, width, note));
      y += ROW;
    }
    y += 10;
  }
  return diagram('Server CPU time of other packages as a multiple of that of espalier', y + 10, elements);
}

function bar(name, y, width, note) {
  const kind = name === 'espalier' ? 'bar-ours' : 'bar-peer';
  return [
    text(LABEL - 10, y + 14, name, '', 'end'),
    `<rect class="${kind}" x="${LABEL}" y="${y}" width="${width.toFixed(1)}" height="17" rx="3"/>`,
    text(LABEL + width + 8, y + 14, note),
  ];
}
