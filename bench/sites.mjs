import { existsSync, mkdirSync, mkdtempSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { runTopic } from './harness.mjs';

const BODY = 'x'.repeat(4096);
const root = makeFiles();

/** A site with two languages, of which the default has no folder, in the folder of a preview. */
function makeFiles() {
  const folder = join(tmpdir(), 'espalier-bench-sites');
  if (existsSync(folder)) return folder;
  const made = mkdtempSync(`${folder}-`);
  const pages = ['index.html', 'guide.html', '404.html', 'de/index.html', 'de/guide.html'];
  for (const name of [...pages, 'assets/app-3f2a91bc.js']) {
    mkdirSync(dirname(join(made, 'pr-1', name)), { recursive: true });
    writeFileSync(join(made, 'pr-1', name), name + BODY);
  }
  renameSync(made, folder);
  return folder;
}

const pages = { cleanUrls: true };
const urls = { cleanUrls: 'no-slash', fallback: 'nearest', notFound: 'nearest' };
const language = { variants: { language: ['en', 'de'], cookie: 'lang' } };
const rules = {
  rules: {
    redirects: '/old/*  /guide/:splat  301\n/start  /guide  302!\n/app/*  /index.html  200',
    headers: '/*\n  X-Frame-Options: DENY\n/assets/*\n  Access-Control-Allow-Origin: *',
  },
};

async function serve(options, dir = join(root, 'pr-1')) {
  const { staticFiles } = await import('espalier/static');
  const files = staticFiles(dir, options);
  return (req, res) =>
    files(req, res, () => {
      res.statusCode = 404;
      res.end();
    });
}

const load = (name, path, accepted = 'en', connections = 32) => ({
  name,
  connections,
  requests: [{ path, headers: { accept: 'text/html', 'accept-language': accepted } }],
  expect: { status: 200 },
});

export const topic = {
  name: 'sites',
  title: 'Several sites on one server',
  about:
    'The options of static-sites.md and static-rules.md. Without the option for languages the page in another language is ' +
    'the one in the default language, from one entry of the cache instead of two.',
  packages: [],
  ratios: ['off'],
  contestants: {
    off: () => serve(pages),
    'one URL, nearest pages': () => serve({ ...pages, ...urls }),
    languages: () => serve({ ...pages, ...language }),
    rules: () => serve({ ...pages, ...rules }),
    all: () => serve({ ...pages, ...urls, ...language, ...rules }),
    'all, a directory for each request': () =>
      serve({ ...pages, ...urls, ...language, ...rules, roots: root }, () => 'pr-1'),
  },
  loads: [
    load('asset', '/assets/app-3f2a91bc.js'),
    load('page', '/guide'),
    load('page in another language', '/guide', 'de'),
    // Each request is checked alone.
    load('asset over one connection', '/assets/app-3f2a91bc.js', 'en', 1),
    load('page over one connection', '/guide', 'en', 1),
    load('page in another language over one connection', '/guide', 'de', 1),
  ],
};

await runTopic(import.meta.url, topic);
