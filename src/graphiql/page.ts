import { escapeHtml } from './escape.ts';
import type { GraphiQLSettings } from './options.ts';

/** The folder below the page from which its files are served. */
export const FILES = '__graphiql';

/** The names of the files that the page loads first, from the build's manifest. */
export interface PageFiles {
  /** The script that starts the page. */
  readonly entry: string;
  readonly styles: readonly string[];
  /** Scripts that the entry imports. The page lists them, so that they load in parallel with the entry. */
  readonly preload: readonly string[];
}

// The delayed hint appears only if the files of the page cannot be loaded; the running page replaces it.
const STYLE = `
html{color-scheme:light dark;background:#fff;color:#3b4b68}
@media (prefers-color-scheme:dark){html{background:#212a3b;color:#b7c2d7}}
html.light{color-scheme:light;background:#fff;color:#3b4b68}
html.dark{color-scheme:dark;background:#212a3b;color:#b7c2d7}
body{margin:0;font:16px system-ui,sans-serif}
#graphiql{height:100vh}
.loading{padding:2rem;opacity:0;animation:appear 0s .4s forwards}
.late{animation-delay:10s;padding-top:0}
@keyframes appear{to{opacity:1}}`;

const FAVICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='7' " +
  "fill='%23d60590'/%3E%3Cg fill='none' stroke='%23fff' stroke-width='2.4' stroke-linecap='round'%3E%3Cpath d='M16 27V6M6 10h20M6 " +
  "18h20M16 18 8 10M16 18l8-8M16 26l-8-8M16 26l8-8'/%3E%3C/g%3E%3C/svg%3E";

/** Renders the parts that are equal for all requests once; a response only joins a few strings. */
export function pageRenderer(
  settings: GraphiQLSettings,
  files: PageFiles,
): (base: string, nonce: string) => string {
  const title = escapeHtml(settings.title);
  const tags = (base: string): string =>
    [
      ...files.styles.map((name) => `<link rel="stylesheet" href="${base}${name}">`),
      ...files.preload.map((name) => `<link rel="modulepreload" href="${base}${name}">`),
      `<script type="module" src="${base}${files.entry}"></script>`,
    ].join('\n');
  return (base, nonce) => `<!doctype html>
<html lang="en" class="${settings.theme}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta property="csp-nonce" nonce="${nonce}">
<title>${title}</title>
<link rel="icon" href="${FAVICON}">
<style nonce="${nonce}">${STYLE}</style>
<script type="application/json" id="graphiql-config">${settings.config}</script>
${tags(escapeHtml(base))}
</head>
<body>
<div id="graphiql">
<p class="loading" role="status">Loading ${title}\u2026</p>
<p class="loading late">This takes longer than expected. The files of this page are at <code>${escapeHtml(base)}</code>. Check
the browser's network panel for failed requests.</p>
</div>
<noscript><p>${title} needs JavaScript.</p></noscript>
</body>
</html>
`;
}

/**
 * The folder of the page's files relative to the page, from the last segment of its path. An absolute path
 * would be wrong behind a proxy that strips a prefix, and `//host/...` would point to another site.
 */
export function filesBase(path: string): string {
  const segment = path.slice(path.lastIndexOf('/') + 1).replace(/\p{Surrogate}/gu, '');
  // Browsers encode these characters, but other clients may not, and they would be unsafe in the page.
  const safe = segment.replace(/[^!-~]|[\\"<>^`{|}]/gu, encodeURIComponent);
  return safe === '' ? `./${FILES}/` : `./${safe}/${FILES}/`;
}
