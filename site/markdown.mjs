// Changes to Markdown, so that the pages of docs/ are readable both on GitHub and as a site.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';

/** The id of a heading as on GitHub, so that links to headings work in both places. */
export function slugify(text) {
  return text
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}\s_-]/gu, '')
    .replace(/\s/g, '-');
}

/** VitePress gives the root element of a page this id. */
const ROOT_ID = 'app';

/** The id of a heading on the site, which differs where that of GitHub is taken. */
export function idOfHeading(text) {
  const id = slugify(text);
  return id === ROOT_ID ? `${id}-1` : id;
}

const besideRoot = (href) =>
  /^[a-z]+:/i.test(href) ? href : href.replace(new RegExp(`#${ROOT_ID}$`), `#${idOfHeading(ROOT_ID)}`);

/** A plugin of markdown-it. `docs` is the folder of the pages, `source` the URL of the repository's files. */
export function forSite(md, { docs, source }) {
  md.core.ruler.push('espalier', ({ tokens, env }) => {
    const folder = dirname(join(docs, env.relativePath.replace(/^index\.md$/, 'README.md')));
    // The first screen of the site has the title already.
    if (env.relativePath === 'index.md') tokens.splice(0, tokens[0]?.tag === 'h1' ? 3 : 0);
    tokens.forEach((token, index) => {
      if (token.type === 'th_open' && tokens[index + 1]?.content === '')
        asEmptyCell(token, tokens[index + 2]);
      if (token.type === 'table_open') asCards(tokens.slice(index, closeOf(tokens, index)));
    });
    for (const { children } of tokens) {
      for (const token of children ?? []) {
        if (token.type === 'link_open')
          token.attrSet('href', besideRoot(linkFor(token.attrGet('href'), folder, { docs, source })));
        if (token.type === 'image' && token.attrGet('src').endsWith('.svg')) asFigure(token, folder);
      }
    }
  });

  md.renderer.rules.table_open = (tokens, index) =>
    `<table tabindex="0"${md.renderer.renderAttrs(tokens[index])}>\n`;

  /**
   * A table with sentences, such as one of options, is shown as a list of cards on phones: each cell gets the heading of
   * its column. The roles stay, which `display: block` would remove.
   */
  function asCards(tokens) {
    const headings = tokens.filter((_, index) => tokens[index - 1]?.type === 'th_open');
    const cells = tokens.filter((_, index) => tokens[index - 1]?.type === 'td_open');
    if (headings.length < 3 || !cells.some(({ content }) => content.length > 60)) return;
    tokens[0].attrJoin('class', 'cards');
    if (hasNotes(cells, headings.length)) tokens[0].attrJoin('class', 'notes');
    const roles = { table_open: 'table', tr_open: 'row', th_open: 'columnheader', td_open: 'cell' };
    let column = 0;
    for (const [index, token] of tokens.entries()) {
      const isEmptyHeading = token.type === 'th_open' && tokens[index + 1].content === '';
      if (Object.hasOwn(roles, token.type) && !isEmptyHeading) token.attrSet('role', roles[token.type]);
      if (/^t(?:head|body)_open$/.test(token.type)) token.attrSet('role', 'rowgroup');
      if (token.type === 'tr_open') column = 0;
      if (token.type !== 'td_open') continue;
      const { content } = headings[column++];
      if (column > 1 && !/^(?:meaning|effect|notes?)$/.test(content))
        token.attrSet('data-label', content.replaceAll('`', ''));
    }
  }

  /** Whether the last column has the most text. */
  function hasNotes(cells, columns) {
    const lengths = Array.from({ length: columns }, () => 0);
    for (const [index, { content }] of cells.entries())
      lengths[index % columns] += content.replace(/\]\([^)]*\)/g, '').length;
    return lengths.every((length) => length <= lengths.at(-1));
  }

  /** The first column of a table of figures has no heading. */
  function asEmptyCell(open, close) {
    open.tag = 'td';
    close.tag = 'td';
  }

  /** The site has a switch for the colour scheme, which an <img> cannot see: each drawing becomes two. */
  function asFigure(token, folder) {
    const file = resolve(folder, token.attrGet('src'));
    const { width, height } = sizeOf(file);
    const alt = md.utils.escapeHtml(token.content);
    const image = (scheme) =>
      `<img class="${scheme}-only" src="/figures/${basename(file, '.svg')}.${scheme}.svg" width="${width}" height="${height}" alt="${alt}">`;
    token.type = 'html_inline';
    token.content = `<span class="figure" tabindex="0" role="group" aria-label="${alt}">${image('light')}${image('dark')}</span>`;
    token.children = null;
  }
}

/** Links out of docs/ lead to the repository. */
function linkFor(href, folder, { docs, source }) {
  if (/^(?:[a-z]+:|#|\/)/i.test(href)) return href;
  const path = resolve(folder, href.replace(/#.*$/, ''));
  if (!relative(docs, path).startsWith('..')) return href.replace(/\bREADME\.md/, 'index.md');
  const kind = existsSync(path) && statSync(path).isDirectory() ? 'tree' : 'blob';
  return `${source.replace('/blob/', `/${kind}/`)}/${relative(dirname(docs), path)}${/#.*$/.exec(href)?.[0] ?? ''}`;
}

/** Writes the pages of docs/ as Markdown beside those of the site, with links that are right there. Pictures stay in the repository. */
export function writeTwins(out, { docs, source }) {
  for (const name of readdirSync(docs, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.md')) continue;
    const folder = dirname(join(docs, name));
    const link = (href) =>
      /^(?:[a-z]+:|#|\/)/i.test(href) || /\.md(?:#|$)/.test(href)
        ? linkFor(href, folder, { docs, source })
        : `${source}/${relative(dirname(docs), resolve(folder, href))}`;
    const text = readFileSync(join(docs, name), 'utf8');
    const twin = join(out, name.replace(/\bREADME\.md$/, 'index.md'));
    mkdirSync(dirname(twin), { recursive: true });
    writeFileSync(
      twin,
      text.replace(/\]\(([^()\s]+)\)/g, (_, href) => `](${link(href)})`),
    );
  }
}

/** The first sentences of a page, for search engines and agents. */
export function descriptionOf(text) {
  const paragraph = text.split(/\n\s*\n/).find((part) => /^[A-Za-z`[]/.test(part));
  const plain = paragraph?.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
  return plain?.replace(/\s+/g, ' ').trim();
}

const closeOf = (tokens, index) => tokens.findIndex(({ type }, at) => at > index && type === 'table_close');

const DARK = /@media \(prefers-color-scheme: dark\) \{([\s\S]*?)\n\}/;

/** Writes each drawing of the pages once for each colour scheme, into a folder of the site. */
export function writeFigures(docs, folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const images = join(docs, 'images');
  const drawings = existsSync(images) ? readdirSync(images).filter((name) => name.endsWith('.svg')) : [];
  for (const name of drawings) {
    const text = readFileSync(join(images, name), 'utf8');
    const stem = basename(name, '.svg');
    writeFileSync(join(folder, `${stem}.light.svg`), text.replace(DARK, ''));
    writeFileSync(join(folder, `${stem}.dark.svg`), text.replace(DARK, '$1'));
  }
}

function sizeOf(file) {
  const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(readFileSync(file, 'utf8')) ?? [];
  return { width, height };
}
