import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig, type MarkdownRenderer } from 'vitepress';
import { HOME } from '../home.mjs';
import { descriptionOf, forSite, idOfHeading, writeFigures } from '../markdown.mjs';
import { sidebarOf } from '../sidebar.mjs';

const here = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));
const REPOSITORY = 'https://github.com/espalier-js/espalier';
const TAGLINE = 'Static files, GraphQL and live subscriptions for Express';

// build.mjs sets these for each version.
const { SITE_BASE = '/', SITE_DOCS = here('../docs'), SITE_OUT = here('dist') } = process.env;
const { SITE_REF = 'main', SITE_VERSION, SITE_VERSIONS = '[]', SITE_IS_OLDER } = process.env;
const { version } = JSON.parse(readFileSync(here('../package.json'), 'utf8')) as { version: string };
const files = readdirSync(SITE_DOCS, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.md'),
);

writeFigures(SITE_DOCS, here('public/figures'));

/** Renders a page for the search, which reads only the text of code: its colours take a quarter of the time of a build. */
function withoutColours(md: MarkdownRenderer, text: string, env: object): string {
  const { highlight } = md.options;
  const escapeText = (code: string) => code.replaceAll('&', '&#x26;').replaceAll('<', '&#x3C;');
  md.set({ highlight: (code) => `<pre>${escapeText(code.trimEnd())}</pre>` });
  const html = md.render(text, env);
  md.set({ highlight });
  return html;
}

export default defineConfig({
  title: 'espalier',
  description: `${TAGLINE}.`,
  lang: 'en',
  base: SITE_BASE,
  srcDir: SITE_DOCS,
  outDir: SITE_OUT,
  cacheDir: here('.cache/vite'),
  cleanUrls: true,
  metaChunk: true,
  // build.mjs checks the links of the newest version, headings included.
  ignoreDeadLinks: SITE_IS_OLDER === 'true' ? true : 'localhostLinks',
  rewrites: { 'README.md': 'index.md', ':folder/README.md': ':folder/index.md' },
  head: [
    ['link', { rel: 'icon', href: `${SITE_BASE}logo.svg`, type: 'image/svg+xml' }],
    ['meta', { name: 'theme-color', content: '#1d6b43' }],
  ],
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    languageAlias: { caddyfile: 'nginx', haproxy: 'nginx' },
    anchor: { slugify: idOfHeading },
    headers: { slugify: idOfHeading },
    toc: { slugify: idOfHeading },
    config: (md) => forSite(md, { docs: SITE_DOCS, source: `${REPOSITORY}/blob/${SITE_REF}` }),
  },
  vite: {
    publicDir: here('public'),
    resolve: {
      alias: [{ find: /^.*\/VPLocalSearchBox\.vue$/, replacement: here('.vitepress/theme/search-box.ts') }],
    },
  },
  themeConfig: {
    logo: '/logo.svg',
    nav: [
      { text: 'Tutorial', link: '/tutorial' },
      { text: 'Guides', link: '/#serve-files', activeMatch: '^/(?!api/|tutorial|$)' },
      { text: 'API', link: '/api/', activeMatch: '^/api/' },
      { component: 'VersionMenu' },
    ],
    sidebar: sidebarOf(files),
    outline: [2, 3],
    // The name of the button is its text, as axe-core demands.
    search: {
      provider: 'local',
      options: {
        translations: { button: { buttonAriaLabel: '' } },
        // The label of a code block would be a part of its first word: "tsimport".
        _render: (text, env, md) =>
          withoutColours(md, text, env).replace(/<span class="lang">[^<]*<\/span>/g, ''),
        miniSearch: { options: { storeFields: ['title', 'titles', 'text'] } },
      },
    },
    socialLinks: [{ icon: 'github', link: REPOSITORY, ariaLabel: 'Source code on GitHub' }],
    editLink: { pattern: `${REPOSITORY}/edit/main/docs/:path`, text: 'Edit this page' },
    footer: { message: 'Released under the MIT licence.' },
    versions: { current: SITE_VERSION ?? version, base: SITE_BASE, all: JSON.parse(SITE_VERSIONS) },
  },
  transformPageData(page) {
    if (page.relativePath === 'index.md') Object.assign(page.frontmatter, HOME);
    else page.description = descriptionOf(readFileSync(`${SITE_DOCS}/${page.filePath}`, 'utf8')) ?? TAGLINE;
  },
});
