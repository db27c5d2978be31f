/** A topic's result as one SVG: a group of bars for each load, CPU time per operation, shorter is better. Readable in both colour schemes. */
export function plot(result) {
  const groups = [];
  let y = 58;
  for (const load of result.loads) {
    const { markup, height } = group(load, y);
    groups.push(markup);
    y += height;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img" aria-label="${safe(result.title)}">
<style>${STYLE}</style>
<rect class="paper" width="${WIDTH}" height="${y}" rx="8"/>
<text class="title" x="20" y="30">${safe(result.title)}: server CPU time for one operation</text>
<text class="note" x="20" y="48">${safe(`Node ${result.node}, ${result.date}; shorter is better`)}</text>
${groups.join('\n')}
</svg>
`;
}

const WIDTH = 760;
const LABEL = 270;
const BAR = 18;
const ROOM = WIDTH - LABEL - 110;
const STYLE = `
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-size: 16px; font-weight: 600 }
.load { font-weight: 600 }
.note { font-size: 12px; fill: #57606a }
.paper { fill: #ffffff }
.peer { fill: #b6c2cf }
.ours { fill: #2f8f5b }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .note { fill: #9da7b3 }
  .paper { fill: #0d1117 }
  .peer { fill: #48525d }
  .ours { fill: #3fb27a }
}`;

function group(load, top) {
  const rows = load.rows.toSorted((a, b) => a.cpu - b.cpu);
  const longest = Math.max(...rows.map((row) => row.cpu));
  const lines = [`<text class="load" x="20" y="${top + 22}">${safe(load.name)}</text>`];
  rows.forEach((row, index) => {
    const y = top + 34 + index * (BAR + 6);
    const width = Math.max(1, (row.cpu / longest) * ROOM).toFixed(1);
    const kind = /espalier|createServer/.test(row.name) ? 'ours' : 'peer';
    lines.push(
      `<text x="${LABEL - 10}" y="${y + 14}" text-anchor="end">${safe(row.name)}</text>`,
      `<rect class="${kind}" x="${LABEL}" y="${y}" width="${width}" height="${BAR}" rx="3"/>`,
      `<text x="${LABEL + Number(width) + 8}" y="${y + 14}">${duration(row.cpu)}</text>`,
    );
  });
  return { markup: lines.join('\n'), height: 34 + rows.length * (BAR + 6) + 14 };
}

function duration(micros) {
  if (micros >= 10_000) return `${(micros / 1000).toFixed(0)} ms`;
  if (micros >= 1000) return `${(micros / 1000).toFixed(1)} ms`;
  return `${micros.toFixed(micros < 100 ? 1 : 0)} µs`;
}

function safe(text) {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}
