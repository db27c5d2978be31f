import { createHash } from 'node:crypto';
import type { Reply } from '../../http/reply/write-reply.ts';
import { SCRIPT } from './script.ts';
import { STYLE } from './style.ts';

const FAVICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='7' " +
  "fill='%232e7d4f'/%3E%3Cg stroke='%23fff' stroke-width='3.4' stroke-linecap='round'%3E%3Cpath d='M8 23v-6M16 23V9M24 23v-10'/%3E%3C/g%3E%3C/svg%3E";

/** The source of an inline element in a policy (CSP 3 §2.3.1). */
const sourceOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** Allows the inline script and style of the page, its icon, and requests to its own origin. */
const POLICY = [
  "default-src 'none'",
  `script-src ${sourceOf(SCRIPT)}`,
  `style-src ${sourceOf(STYLE)}`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Creates the response with the page, which contains everything that it needs. */
export const createPage = (title: string): Reply => ({
  status: 200,
  headers: {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': POLICY,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  },
  body: html(escapeHtml(title)),
});

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const heads = (names: readonly string[]): string =>
  names
    .map((name) => {
      const [, text = '', classes = ''] = /^([^.]*)(?:\.(.*))?$/.exec(name) ?? [];
      return `<th scope="col"${classes === '' ? '' : ` class="${classes.replaceAll('.', ' ')}"`}>${text}</th>`;
    })
    .join('');

const table = (
  title: string,
  { id, columns, empty }: { id: string; columns: string[]; empty: string },
): string =>
  `<section id="${id}"><h2>${title}</h2>
<div class="scroll" hidden><table><thead><tr>${heads(columns)}</tr></thead><tbody></tbody></table></div>
<p class="empty">${empty}</p></section>`;

const OPERATIONS = table('Operations in the last five minutes', {
  id: 'operations',
  columns: [
    'Operation',
    'Requests.number',
    'Errors.number',
    'p50.number',
    'p99.number',
    '.wide',
    'Longest.number.wide',
    'Since start.number.wide',
  ],
  empty: 'No operation yet.',
});

const ERRORS = table('Errors', {
  id: 'errors',
  columns: ['Code', 'Count.number', 'Last message', 'Operation.wide', 'Last.number'],
  empty: 'No errors since the start.',
});

const html = (title: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}: live figures</title>
<link rel="icon" href="${FAVICON}">
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>${title}</h1>
<span id="process"></span>
<span id="status" data-state="live" role="status"><span id="state">loading</span><button id="pause" type="button" aria-pressed="false">Pause</button></span>
</header>
<main>
<dl id="tiles"></dl>
<section id="history"><h2>Operations per second</h2><div id="chart"></div>
<div class="axis"><span>two minutes ago</span><span id="most"></span><span>now</span></div></section>
${OPERATIONS}
${ERRORS}
<section class="half"><h2>Cache hits</h2><div id="rates" class="meters"></div></section>
<section class="half"><h2>Memory budgets</h2><div id="budgets" class="meters"></div></section>
<section class="third"><h2>In progress</h2><dl id="live" class="pairs"></dl></section>
<section class="third"><h2>Process</h2><dl id="process-numbers" class="pairs"></dl></section>
<section class="third"><h2>Since the start</h2><dl id="traffic" class="pairs"></dl></section>
</main>
<footer>Figures of this process only. <noscript>This page needs JavaScript; </noscript>As JSON: GET this page with <code>Accept: application/json</code>.</footer>
<script>${SCRIPT}</script>
</body>
</html>
`;
