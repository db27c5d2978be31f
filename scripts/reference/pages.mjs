// The pages of the API reference in docs/api, as text by file name.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { exportsOf } from './read.mjs';

const NOTICE = '<!-- Written by `npm run docs` from the docstrings of the sources. Do not edit. -->';
const COLUMNS = 110;

export function referencePages(root) {
  const entries = entriesOf(root);
  const homes = new Map();
  for (const { page, exported } of entries.toSorted((a, b) => a.rank - b.rank)) {
    for (const name of exported.keys()) if (!homes.has(name)) homes.set(name, page);
  }
  const pages = new Map(entries.map((entry) => [`${entry.page}.md`, textOfEntry(entry, homes)]));
  pages.set('README.md', textOfIndex(entries, homes));
  return pages;
}

/** The entries of package.json. The root comes last, so that a name belongs to the subpath that exports it. */
function entriesOf(root) {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const names = Object.keys(exports).filter((name) => !name.endsWith('.json'));
  return names.map((name, index) => {
    const subpath = name.slice(2);
    const file = [`middleware/${subpath || 'index'}.ts`, `${subpath}/index.ts`].find((path) =>
      existsSync(join(root, path)),
    );
    if (file === undefined) throw new Error(`No source was found for the entry "${name}" of package.json`);
    const page = subpath === '' ? 'espalier' : subpath.replaceAll('/', '-');
    const specifier = subpath === '' ? 'espalier' : `espalier/${subpath}`;
    return {
      page,
      specifier,
      file,
      exported: exportsOf(root, file),
      rank: subpath === '' ? Infinity : index,
    };
  });
}

function textOfEntry({ page, specifier, exported }, homes) {
  const here = [...exported.values()].filter(({ name }) => homes.get(name) === page);
  const values = here.filter(isValue).sort(functionsFirst);
  const types = here.filter((each) => !isValue(each)).sort((a, b) => a.name.localeCompare(b.name));
  const elsewhere = [...exported.keys()].filter((name) => homes.get(name) !== page);
  const link = (name) =>
    `[\`${name}\`](${homes.get(name) === page ? '' : `${homes.get(name)}.md`}#${name.toLowerCase()})`;
  const lines = [`# ${specifier}`, '', NOTICE, ''];
  for (const declaration of [...values, ...types]) lines.push(...section(declaration, homes, link));
  if (elsewhere.length > 0) {
    lines.push(
      '## Other exports',
      '',
      wrap(`This entry also exports ${list(elsewhere.sort().map(link))}.`),
      '',
    );
  }
  return `${lines.join('\n').trimEnd()}\n`;
}

function textOfIndex(entries, homes) {
  const lines = ['# API reference', '', NOTICE, ''];
  lines.push(
    wrap('Each entry of the package has a page. The root `espalier` exports the usual names of the others.'),
    '',
  );
  for (const { page, specifier, exported } of entries) {
    const here = [...exported.values()].filter(({ name }) => homes.get(name) === page);
    if (here.length === 0) continue;
    lines.push(`## [${specifier}](${page}.md)`, '', '| export | kind | purpose |', '|---|---|---|');
    for (const { name, kind, doc } of here.sort(
      (a, b) =>
        Number(isValue(b)) - Number(isValue(a)) || functionsFirst(a, b) || a.name.localeCompare(b.name),
    )) {
      lines.push(
        `| [\`${name}\`](${page}.md#${name.toLowerCase()}) | ${kind} | ${cell(firstSentence(doc.text))} |`,
      );
    }
    lines.push('');
  }
  return `${lines.join('\n').trimEnd()}\n`;
}

const functionsFirst = (a, b) => Number(b.kind === 'function') - Number(a.kind === 'function');
const isValue = ({ kind }) => kind === 'function' || kind === 'const' || kind === 'class';

function section(declaration, homes, link) {
  const { name, kind, doc, texts, members, base } = declaration;
  const lines = [`## ${name}`, '', ...paragraphs(doc.text)];
  if (kind !== 'interface') lines.push('```ts signature', texts.map(dedent).join(';\n'), '```', '');
  if (doc.params.length > 0) {
    lines.push('| parameter | meaning |', '|---|---|');
    lines.push(...doc.params.map(({ name: parameter, text }) => `| \`${parameter}\` | ${cell(text)} |`), '');
  }
  if (doc.returns) lines.push(wrap(`Returns ${doc.returns}.`), '');
  for (const text of doc.throws) lines.push(wrap(`Throws ${text.replace(/\.$/, '')}.`), '');
  for (const code of doc.examples) lines.push('```ts example', code, '```', '');
  if (base.length > 0)
    lines.push(wrap(`Extends ${list(base.map((type) => baseLink(type, homes, link)))}.`), '');
  if (members.length > 0) lines.push(...table(members));
  const related = relatedTypes(declaration, homes);
  if (related.length > 0) lines.push(wrap(`See also ${list(related.map(link))}.`), '');
  return lines;
}

function baseLink(type, homes, link) {
  const name = /^\w+/.exec(type)?.[0];
  return homes.has(name) ? link(name) : `\`${type}\``;
}

function table(members) {
  const withDefaults = members.some(({ doc }) => doc.defaultText);
  const head = withDefaults ? ['member', 'type', 'default', 'meaning'] : ['member', 'type', 'meaning'];
  const rows = members.map(({ name, type, optional, doc }) => {
    const cells = [code(optional ? `${name}?` : name), code(plainType(type))];
    if (withDefaults) cells.push(doc.defaultText ? defaultCell(doc.defaultText) : '');
    return [...cells, cell(doc.text)];
  });
  return [
    `| ${head.join(' | ')} |`,
    `|${'---|'.repeat(head.length)}`,
    ...rows.map((cells) => `| ${cells.join(' | ')} |`),
    '',
  ];
}

/** A value alone is code, such as `false` or `[GET, POST]`; a phrase is text. */
const defaultCell = (text) => (/^(?:[\d_]+|true|false|'.*'|\[.*\])$/.test(text) ? code(text) : cell(text));

/** `undefined` is allowed for every option, so the types of optional members do not repeat it. */
function plainType(type) {
  const line = type
    .replace(/\/\*\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .trim();
  return line.replace(/^\| /, '').replace(/ \| undefined$/, '');
}

const code = (text) => `\`${text.replaceAll('|', '\\|')}\``;
const cell = (text) => text.replace(/\s+/g, ' ').replaceAll('|', '\\|');
const firstSentence = (text) => text.replace(/\s+/g, ' ').split(/(?<=[a-z`)]\.) /)[0];
const list = (items) =>
  items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;

/** The exported types that a declaration mentions. */
function relatedTypes({ name, texts, members, base }, homes) {
  const text = [...texts, ...members.map(({ type }) => type)].join(' ');
  const bases = base.map((type) => /^\w+/.exec(type)?.[0]);
  const mentioned = new Set(text.match(/\b[A-Z]\w+/g));
  return [...mentioned].filter((each) => each !== name && homes.has(each) && !bases.includes(each)).sort();
}

/** Wraps the paragraphs of a text, and each item of its lists. */
function paragraphs(text) {
  if (text === '') return [];
  const items = (paragraph) => paragraph.split(/\n(?=(?:-|\d+\.) )/);
  return text.split(/\n\s*\n/).flatMap((paragraph) => [items(paragraph).map(wrap).join('\n'), '']);
}

function dedent(text) {
  return text.replace(/^export /, '').replace(/^ {2}(?= )/gm, '');
}

/** Breaks a paragraph at the line length of the documentation, and not inside of code. */
function wrap(text) {
  const lines = [''];
  for (const word of text
    .replace(/\s+/g, ' ')
    .trim()
    .match(/(?:`[^`]*`|[^\s`])+/g) ?? []) {
    if (lines.at(-1) !== '' && [...lines.at(-1), ...word].length + 1 > COLUMNS) lines.push('');
    lines[lines.length - 1] += lines.at(-1) === '' ? word : ` ${word}`;
  }
  return lines.join('\n');
}
