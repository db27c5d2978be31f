// What the first page of the site shows: the code of site/home.md, sections of README.md, figures of docs/benchmarks.md.
import { readFileSync } from 'node:fs';
import { createMarkdownRenderer } from 'vitepress';

const at = (path) => new URL(`../../../${path}`, import.meta.url);
const HOME = at('site/home.md');
const README = at('README.md');
const BENCHMARKS = at('docs/benchmarks.md');

/** Rows of the headline figures, each with one of the packages that it is compared with. */
const FIGURES = [
  { row: 'a file of 10 KiB under Express', other: '`express.static`', unit: 'a file of 10 KiB' },
  { row: 'a list of 20 objects under Express', other: 'Apollo Server', unit: 'a query for 20 objects' },
  { row: 'an event for one of 1000 sockets', other: 'graphql-ws', unit: 'an event for one of 1000 sockets' },
];

export default {
  watch: [HOME, README, BENCHMARKS].map(({ pathname }) => pathname),
  async load() {
    const [home, readme, benchmarks] = [HOME, README, BENCHMARKS].map((file) => readFileSync(file, 'utf8'));
    // The renderer of the site's pages, with their plugins.
    const md = await createMarkdownRenderer('.');
    const render = (text) => md.render(text, { path: 'index.md', relativePath: 'index.md', cleanUrls: true });
    // Links are relative to docs/, as on its pages.
    const section = (text, heading) => {
      const { title, body } = sectionOf(text, heading);
      const linked = body.replace(/\]\((?!https?:|#|\.\.\/)(docs\/)?/g, (_, docs) => (docs ? '](' : '](../'));
      return { title, html: render(linked) };
    };
    return {
      install: /npm install espalier[^\n]*/.exec(readme)[0],
      tabs: ['Files', 'GraphQL', 'Live'].map((name) => ({ name, html: render(sectionOf(home, name).body) })),
      replaces: section(readme, 'What it replaces'),
      notFor: section(readme, 'Who should not use it|What it does not do'),
      versions: section(home, 'What 0\\.x means'),
      figures: FIGURES.map((figure) => figureOf(benchmarks, figure)),
    };
  },
};

function sectionOf(text, heading) {
  const found = new RegExp(`^## (${heading})\\n([\\s\\S]*?)(?=^## |(?![\\s\\S]))`, 'm').exec(text);
  if (found === null) throw new Error(`The first page of the site needs a section "${heading}"`);
  return { title: found[1], body: found[2].trim() };
}

/** "Apollo Server 7.3" of a row such as `| … | 37 µs | graphql-http 6.7, Apollo Server 7.3 times |`. */
function figureOf(benchmarks, { row, other, unit }) {
  const line = benchmarks.split('\n').find((text) => text.startsWith(`| ${row}`)) ?? '';
  const found = new RegExp(`\\| (\\S+ [µm]s) \\|.*${other} ([\\d.]+)`).exec(line);
  if (found === null) throw new Error(`docs/benchmarks.md has no row "${row}" with ${other}`);
  return { unit, time: found[1], other: other.replaceAll('`', ''), times: found[2] };
}
