// Elements of the diagrams in docs/images. Readable in both colour schemes, in the colours of the plots in bench/.

export const WIDTH = 760;

const STYLE = `
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 }
.code { font: 600 13px ui-monospace, SFMono-Regular, Menlo, monospace }
.note { font-size: 12px; fill: #57606a }
.paper { fill: #ffffff }
.frame { fill: #f6f8f7; stroke: #9fb8ab; stroke-dasharray: 5 4 }
.box { fill: #ffffff; stroke: #8c959f }
.ours { fill: #e3f3ea; stroke: #2f8f5b }
.stop { fill: #fdf0ef; stroke: #c4615a }
.bar-peer { fill: #b6c2cf }
.bar-ours { fill: #2f8f5b }
.line { fill: none; stroke: #57606a; stroke-width: 1.5 }
.head { fill: #57606a }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .note { fill: #9da7b3 }
  .paper { fill: #0d1117 }
  .frame { fill: #131a20; stroke: #4a6558 }
  .box { fill: #161b22; stroke: #6e7681 }
  .ours { fill: #12301f; stroke: #3fb27a }
  .stop { fill: #331c1c; stroke: #d0766f }
  .bar-peer { fill: #48525d }
  .bar-ours { fill: #3fb27a }
  .line { stroke: #9da7b3 }
  .head { fill: #9da7b3 }
}`;

/** A whole diagram. `label` is the text for screen readers. */
export function diagram(label, height, elements) {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${safe(label)}">
<style>${STYLE}</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>
<rect class="paper" width="${WIDTH}" height="${height}" rx="8"/>
${elements.flat().join('\n')}
</svg>
`;
}

/** A box with a title and lines of notes, centred. A title in backticks is code. */
export function box(kind, { x, y, width, height }, title, ...notes) {
  const code = title.startsWith('`');
  const first = y + height / 2 + 4.5 - (notes.length * 17) / 2;
  const line = (name, text, at) =>
    `<text class="${name}" x="${x + width / 2}" y="${at}" text-anchor="middle">${safe(text.replaceAll('`', ''))}</text>`;
  return [
    `<rect class="${kind}" x="${x}" y="${y}" width="${width}" height="${height}" rx="6"/>`,
    line(code ? 'code' : 'title', title.replaceAll('`', ''), first),
    ...notes.map((note, index) => line('note', note, first + 17 * (index + 1))),
  ];
}

/** A dashed frame around other boxes, with a title in its upper left corner. */
export function frame({ x, y, width, height }, title) {
  return [
    `<rect class="frame" x="${x}" y="${y}" width="${width}" height="${height}" rx="10"/>`,
    text(x + 14, y + 22, title, title.startsWith('`') ? 'code' : 'title'),
  ];
}

export function text(x, y, words, name = 'note', anchor = 'start') {
  return `<text class="${name}" x="${x}" y="${y}" text-anchor="${anchor}">${safe(words.replaceAll('`', ''))}</text>`;
}

/** A line through points with an arrow at its end, or at both ends. */
export function arrow(points, ends = 'end') {
  const path = points.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${x} ${y}`).join('');
  const start = ends === 'both' ? ' marker-start="url(#head)"' : '';
  return `<path class="line" d="${path}" marker-end="url(#head)"${start}/>`;
}

function safe(words) {
  return words.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}
