// Checks the links of the built site: pages, headings, pictures, styles and scripts.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** A line for each link of a page that leads to no file or to no heading. */
export async function brokenLinks(folder, base) {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.html'),
  );
  const pages = new Map(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
  const ids = new Map(
    [...pages].map(([name, text]) => [
      name,
      new Set([...text.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id)),
    ]),
  );
  const broken = [];
  for (const [name, text] of pages) {
    if (name.endsWith('404.html')) continue;
    const links = new Set(
      [...text.matchAll(/\s(?:href|src)="([^"]+)"/g)].map(([, link]) => link.replaceAll('&amp;', '&')),
    );
    for (const link of links) {
      const problem = problemOf(link, name);
      if (problem !== undefined) broken.push(`${name}: ${link}: ${problem}`);
    }
  }
  return broken;

  function problemOf(link, from) {
    const url = new URL(
      link,
      `http://site.test${base}${from.replace(/\.html$/, '').replace(/(^|\/)index$/, '$1')}`,
    );
    if (url.host !== 'site.test')
      return url.protocol === 'http:' && url.hostname !== 'localhost' ? 'use https' : undefined;
    if (!url.pathname.startsWith(base)) return 'outside of the site';
    const file = fileOf(decodeURIComponent(url.pathname.slice(base.length)));
    if (file === undefined) return 'not found';
    const id = decodeURIComponent(url.hash.slice(1));
    return id !== '' && ids.get(file)?.has(id) === false ? 'no such heading' : undefined;
  }

  function fileOf(path) {
    const candidates = path === '' || path.endsWith('/') ? [`${path}index.html`] : [path, `${path}.html`];
    return candidates.find((name) => existsSync(join(folder, name)) && statSync(join(folder, name)).isFile());
  }
}
