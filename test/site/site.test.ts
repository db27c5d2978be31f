/** @tags once */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { launch } from '../chromium.ts';
import { failExample, type Running, startExample, stopExamples } from '../examples/start.ts';
import { pages, root } from '../snippets.ts';
import { mistakesOf, repeatedIds } from './mistakes.ts';
import { QUESTIONS } from './questions.ts';

// Builds the site and opens it in Chromium, served by examples/docs-site.

jest.setTimeout(600_000);

const out = join(root, 'artifacts/site');
const screenshots = join(root, 'artifacts/site-screenshots');
const DESKTOP = {
  viewport: { width: 1440, height: 900 },
  colorScheme: 'light',
} satisfies BrowserContextOptions;
const PHONE = {
  viewport: { width: 390, height: 844 },
  colorScheme: 'dark',
  isMobile: true,
  hasTouch: true,
} satisfies BrowserContextOptions;
/** The addresses of the pages of docs/. */
const paths = pages
  .filter((page) => page.startsWith('docs/'))
  .map((page) => page.slice('docs'.length).replace(/README\.md$|\.md$/, ''));

let browser: Browser;
let server: Running;
let axe: string;

beforeAll(async () => {
  if (!existsSync(join(root, 'site/node_modules'))) throw new Error('run npm ci --prefix site first');
  axe = readFileSync(join(root, 'site/node_modules/axe-core/axe.min.js'), 'utf8');
  rmSync(out, { recursive: true, force: true });
  mkdirSync(screenshots, { recursive: true });
  const versions = join(root, 'artifacts/versions.json');
  writeFileSync(versions, JSON.stringify([{ name: '0.0', ref: createOlderVersion() }]));
  // The command of CONTRIBUTING.md, which runs in site/.
  const args = ['run', 'build', '--prefix', 'site', '--', '--out', out, '--versions', versions];
  const { status, stderr, stdout } = spawnSync('npm', args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`The site was not built:\n${stdout}\n${stderr}`);
  server = await startExample('docs-site/server', { SITE_DIR: out });
  browser = await launch();
});

afterAll(async () => {
  await browser?.close();
  await stopExamples();
});

/** Creates a Git tree with a few pages of docs/, and returns its id. The build takes it like the tag of a version. */
function createOlderVersion(): string {
  const git = (args: string[], input = ''): string =>
    execFileSync('git', args, { cwd: root, input, encoding: 'utf8' }).trim();
  const entries = ['README.md', 'static-files.md', 'images'].map((name) =>
    git(['ls-tree', 'HEAD:docs', name]),
  );
  return git(['mktree'], `040000 tree ${git(['mktree'], `${entries.join('\n')}\n`)}\tdocs\n`);
}

/** A page that collects its problems: requests to other hosts, errors, violations of the policy. */
async function createPage(options: BrowserContextOptions): Promise<{ page: Page; problems: string[] }> {
  const context = await browser.newContext({ ...options, reducedMotion: 'reduce' });
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(server.url) && !request.url().startsWith('data:'))
      problems.push(request.url());
  });
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`${response.status()} ${response.url()}`);
  });
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(String(error)));
  return { page, problems };
}

/** Opens an address and waits until its scripts have run. */
async function visit(page: Page, path: string): Promise<void> {
  await page.goto(`${server.url}${path}`);
  // waitForFunction would need a policy that allows eval.
  while (!(await page.evaluate("document.querySelector('#app').__vue_app__ !== undefined"))) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function open(
  path: string,
  options: BrowserContextOptions,
): Promise<{ page: Page; problems: string[] }> {
  const opened = await createPage(options);
  await visit(opened.page, path);
  return opened;
}

interface AxeResult {
  violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
}

/** The violations that axe-core finds on a page, each with the first of its elements. */
async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const { violations } = (await page.evaluate(
    "axe.run('html', { resultTypes: ['violations'] })",
  )) as AxeResult;
  return violations.map(
    ({ id, nodes }) => `${id} (${nodes.length}): ${nodes[0]?.html} ${nodes[0]?.failureSummary}`,
  );
}

const OVERFLOW = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';

/** The file of a page in the built site. */
const fileOf = (path: string): string => join(out, path.endsWith('/') ? `${path}index.html` : `${path}.html`);

it('the site has a page for every page of docs/', () => {
  expect(paths.length).toBeGreaterThan(35);
  expect(paths.filter((path) => !existsSync(fileOf(path)))).toEqual([]);
});

/** A page of each kind, which a screenshot shows. */
const SHOWN = [
  '/',
  '/tutorial',
  '/how-it-works',
  '/errors',
  '/api/graphql',
  '/benchmarks',
  '/migrating/apollo-server',
];

const others = paths.filter((path) => !SHOWN.includes(path));

/** How much wider than the window a page is. */
async function overflowOf(page: Page): Promise<string[]> {
  const overflow = await page.evaluate(OVERFLOW);
  return overflow === 0 ? [] : [`The page is ${overflow} pixels wider than the window`];
}

it.each([
  ['desktop', 'light', DESKTOP],
  ['phone', 'dark', PHONE],
] as const)(
  'a page of each kind has no violation of axe-core, no error and no request to another host on a %s in %s colours',
  async (name, _scheme, options) => {
    const found: Record<string, unknown> = {};
    const { page, problems } = await createPage(options);
    for (const path of SHOWN) {
      await visit(page, path);
      const all = [...(await violationsOf(page)), ...(await overflowOf(page)), ...problems.splice(0)];
      if (all.length > 0) found[path] = all;
      await shoot(page, name, path);
    }
    await page.context().close();
    expect(found).toEqual({});
  },
);

// What the text of a page can get wrong by itself. All pages have the same frame, colours and styles, which axe-core checks
// on a page of each kind.
it('every other page has one title, headings in order, a text for each link and image, and ids that occur once', () => {
  const found = others.map((path) => [path, mistakesOf(readFileSync(fileOf(path), 'utf8'))] as const);
  expect(found.filter(([, mistakes]) => mistakes.length > 0)).toEqual([]);
});

it('an id occurs once on each page, and no link leads to a heading with the id of the root element', () => {
  const found = [...paths, '/404'].map((path) => {
    const html = readFileSync(fileOf(path), 'utf8');
    return [path, [...repeatedIds(html), ...(html.match(/<a\b[^>]*#app"/g) ?? [])]] as const;
  });
  expect(found.filter(([, mistakes]) => mistakes.length > 0)).toEqual([]);
  expect(readFileSync(fileOf('/api/server'), 'utf8')).toContain('id="app-1"');
});

it('every other page has no error and no request to another host, and fits a phone', async () => {
  const found: Record<string, unknown> = {};
  // Compressing each page for one visit takes longer than sending it.
  const { page, problems } = await createPage({
    ...PHONE,
    extraHTTPHeaders: { 'accept-encoding': 'identity' },
  });
  // The script of VitePress then loads no page whose link is visible.
  await page.addInitScript("Object.defineProperty(navigator.connection, 'saveData', { value: true })");
  for (const path of [...others, '/absent']) {
    await visit(page, path);
    const all = [...(await overflowOf(page)), ...problems.splice(0)];
    const unexpected = path === '/absent' ? all.filter((text) => !text.includes('404')) : all;
    if (unexpected.length > 0) found[path] = unexpected;
  }
  await page.context().close();
  expect(found).toEqual({});
});

async function shoot(page: Page, name: string, path: string): Promise<void> {
  await page.screenshot({ path: join(screenshots, `${name}${path.replaceAll('/', '-')}.png`) });
}

it.each([
  ['desktop', 'light', DESKTOP],
  ['phone', 'dark', PHONE],
] as const)(
  'the search box has no violation of axe-core before a search, with results and without them (%s in %s colours)',
  async (name, scheme, options) => {
    const { page, problems } = await open('/', options);
    await page.getByRole('button', { name: /^Search/ }).click();
    const box = page.getByRole('dialog', { name: 'Search' });
    const input = box.getByRole('searchbox');
    expect(await violationsOf(page)).toEqual([]);
    await input.fill('maxFileBytes');
    await box.getByRole('link').first().waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await page.screenshot({ path: join(screenshots, `${name}-${scheme}-search.png`) });
    await input.fill('xylophone');
    await box.getByText('No results for "xylophone"').waitFor();
    expect(await violationsOf(page)).toEqual([]);
    expect(await page.evaluate(OVERFLOW)).toBe(0);
    await box.getByRole('button', { name: 'Close' }).click();
    await box.waitFor({ state: 'detached' });
    expect(problems).toEqual([]);
    await page.context().close();
  },
);

it('the search of the site finds an option by its name and opens its page', async () => {
  const { page, problems } = await open('/', DESKTOP);
  await page.getByRole('button', { name: /^Search/ }).click();
  const box = page.getByRole('dialog', { name: 'Search' });
  await box.getByRole('searchbox').fill('maxFileBytes');
  await box.getByRole('link').filter({ hasText: 'Uploads' }).first().click();
  await page.waitForURL(/\/(uploads|object-storage|api\/graphql)/);
  expect(await box.count()).toBe(0);
  expect(problems).toEqual([]);
  await page.context().close();
});

it('the search of the site finds these words on their page first, with an excerpt', async () => {
  const { page, problems } = await open('/', DESKTOP);
  await page.getByRole('button', { name: /^Search/ }).click();
  const box = page.getByRole('dialog', { name: 'Search' });
  for (const [words, address] of [
    ['auth', /^\/authentication/],
    ['SPA', /^\/static-files#serve-a-single-page-app$/],
    ['JWT', /^\/(?:authentication|jwt)/],
    ['N+1', /^\/(?:dataloader|prisma)/],
    ['Prisma', /^\/(?:dataloader|prisma)/],
    ['file upload to S3', /^\/object-storage/],
    ['rate limit', /^\/cost#budgets$/],
    ['graceful shutdown', /^\/(?:health|deployment)/],
  ] as const) {
    await box.getByRole('searchbox').fill('');
    await box.getByRole('searchbox').pressSequentially(words);
    const first = box.getByRole('link').first();
    await first.waitFor();
    expect([words, await first.getAttribute('href')]).toEqual([words, expect.stringMatching(address)]);
    expect((await first.locator('.excerpt').innerText()).length).toBeGreaterThan(40);
  }
  expect(problems).toEqual([]);
  await page.context().close();
});

it('the search of the site finds the right place first for what people type', async () => {
  expect(QUESTIONS.length).toBeGreaterThanOrEqual(80);
  const { page, problems } = await open('/', DESKTOP);
  await page.getByRole('button', { name: /^Search/ }).click();
  const box = page.getByRole('dialog', { name: 'Search' });
  const input = box.getByRole('searchbox');
  await input.fill('uploads');
  await box.getByRole('link').first().waitFor();
  const wrong: unknown[] = [];
  for (const [words, address] of QUESTIONS) {
    await input.fill(words);
    const links = await box
      .getByRole('link')
      .evaluateAll((all) => all.map((link) => String(link.getAttribute('href')).slice(1)));
    const isRight = address.split('|').some((each) => links[0] === each || links[0]?.startsWith(`${each}#`));
    if (!isRight) wrong.push([words, address, links.slice(0, 4)]);
  }
  expect(wrong).toEqual([]);
  expect(problems).toEqual([]);
  await page.context().close();
});

it('the results of a search wrap, have no labels of code blocks, and none is a list of known limits if a page has the words as its title', async () => {
  const { page } = await open('/', DESKTOP);
  await page.getByRole('button', { name: /^Search/ }).click();
  const box = page.getByRole('dialog', { name: 'Search' });
  await box.getByRole('searchbox').fill('limits');
  await box.getByRole('link').first().waitFor();
  const links = await box
    .getByRole('link')
    .evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''));
  expect(links.slice(0, 5).filter((href) => href.endsWith('#known-limits'))).toEqual([]);
  await box.getByRole('searchbox').fill('createPubSub Cluster ioredis');
  await box.getByText('import').first().waitFor();
  const excerpts = box.locator('.excerpt');
  expect((await excerpts.allInnerTexts()).filter((text) => /\b(?:ts|js|sh)import\b/.test(text))).toEqual([]);
  const widths = await excerpts.evaluateAll((all) => all.map((each) => each.scrollWidth - each.clientWidth));
  expect(widths.filter((width) => width > 0)).toEqual([]);
  const heights = await excerpts.evaluateAll((all) => all.map((each) => each.clientHeight));
  expect(Math.max(...heights)).toBeGreaterThan(30); // two lines
  await page.context().close();
});

it('the page for unknown addresses suggests pages with similar names', async () => {
  const { page } = await open('/guide/uploading-files', DESKTOP);
  await page.getByRole('heading', { name: 'There is no page at this address' }).waitFor();
  await page.getByRole('main').getByRole('link', { name: 'Uploads', exact: true }).click();
  await page.waitForURL(`${server.url}/uploads`);
  await page.context().close();
});

it('tables with sentences are cards on a phone', async () => {
  const { page } = await open('/subscriptions', PHONE);
  const row = page.getByRole('row').filter({ hasText: 'contextPer' }).first();
  const cells = await row
    .getByRole('cell')
    .evaluateAll((all) => all.map((cell) => cell.getBoundingClientRect().x));
  expect(cells).toEqual([cells[0], cells[0], cells[0]]);
  await row.screenshot({ path: join(screenshots, 'phone-option.png') });
  await page.context().close();
});

it('a table gives half of its width to notes, and names stay whole beside short texts', async () => {
  const { page } = await open('/other-words', DESKTOP);
  const lines = (text: string) =>
    page
      .locator('td code')
      .getByText(text, { exact: true })
      .first()
      .evaluate((code) => code.getClientRects().length);
  expect([await lines('GraphQLSchema'), await lines('resolveReferences')]).toEqual([1, 1]);
  await visit(page, '/rate-limits');
  const [table, notes] = await Promise.all([
    page.locator('table.cards').first().boundingBox(),
    page.locator('table.cards th:last-child').first().boundingBox(),
  ]);
  expect((notes?.width ?? 0) / (table?.width ?? 1)).toBeGreaterThan(0.49);
  await page.context().close();
});

it('the search box works with the keyboard only', async () => {
  const { page, problems } = await open('/tutorial', DESKTOP);
  const box = page.getByRole('dialog', { name: 'Search' });
  await page.keyboard.press('Control+k');
  await box.waitFor();
  await page.keyboard.press('Escape');
  await box.waitFor({ state: 'detached' });
  await page.keyboard.press('/');
  await box.waitFor();
  await page.keyboard.type('error codes');
  const links = box.getByRole('link');
  await links.first().waitFor();
  const waitForFocus = (index: number) => links.nth(index).and(page.locator(':focus')).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await waitForFocus(1);
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  await waitForFocus((await links.count()) - 1);
  await page.keyboard.press('ArrowDown');
  const first = await links.first().getAttribute('href');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.href.endsWith(String(first)));
  expect(problems).toEqual([]);
  await page.context().close();
});

it('the switch for dark colours changes the page and its drawings', async () => {
  const { page } = await open('/how-it-works', DESKTOP);
  const shown = () => page.locator('.figure img:visible').first().getAttribute('src');
  expect(await shown()).toContain('.light.svg');
  await page.locator('.VPNavBarAppearance button').click();
  expect(await shown()).toContain('.dark.svg');
  expect(await violationsOf(page)).toEqual([]);
  await page.screenshot({ path: join(screenshots, 'desktop-dark-how-it-works.png') });
  await page.context().close();
});

it.each([
  ['desktop', DESKTOP],
  ['phone', PHONE],
])('the example on the first page does not overlap the title (%s)', async (name, options) => {
  const { page } = await open('/', options);
  const [title, example] = await Promise.all([
    page.locator('.VPHero .main').boundingBox(),
    page.locator('.hero-example').boundingBox(),
  ]);
  if (title === null || example === null) throw new Error('The first page has no title or no example');
  const isBelow = example.y >= title.y + title.height;
  const isRight = example.x >= title.x + title.width;
  expect(isBelow || isRight).toBe(true);
  await page.screenshot({ path: join(screenshots, `${name}-first.png`) });
  await page.context().close();
});

it('the examples of the first page are tabs that the keyboard moves between', async () => {
  const { page, problems } = await open('/', DESKTOP);
  const tab = (name: string) => page.getByRole('tab', { name, selected: true, exact: true });
  await tab('Files').focus();
  for (const [key, name, text] of [
    ['ArrowRight', 'GraphQL', 'graphqlHTTP'],
    ['ArrowRight', 'Live', 'attachSubscriptions'],
    ['ArrowRight', 'Files', 'staticFiles'],
    ['ArrowLeft', 'Live', 'attachSubscriptions'],
  ] as const) {
    await page.keyboard.press(key);
    await tab(name).and(page.locator(':focus')).waitFor();
    await page.getByRole('tabpanel').getByText(text).first().waitFor();
    expect(await page.getByRole('tabpanel').count()).toBe(1);
  }
  expect(await violationsOf(page)).toEqual([]);
  expect(problems).toEqual([]);
  await page.context().close();
});

it('llms.txt links every guide as Markdown with a sentence about it, and llms-full.txt has their text', async () => {
  const text = async (path: string): Promise<string> => (await fetch(`${server.url}${path}`)).text();
  const [list, full] = await Promise.all([text('/llms.txt'), text('/llms-full.txt')]);
  const links = [...list.matchAll(/^- \[[^\]]+\]\((\S+)\): \S.*\.$/gm)].map(([, link = '']) => link);
  expect(links).toHaveLength(list.match(/^- /gm)?.length ?? 0);
  const guides = paths.filter((path) => !path.startsWith('/api/'));
  expect(links.filter((link) => !link.startsWith('/api/')).sort()).toEqual(
    guides.map((path) => `${path.replace(/\/$/, '/index')}.md`).sort(),
  );
  for (const link of links) expect([link, (await fetch(`${server.url}${link}`)).status]).toEqual([link, 200]);
  expect(full).toContain(await text('/limits.md'));
});

it('the menu of a phone opens and leads to another page', async () => {
  const { page, problems } = await open('/', PHONE);
  await page.locator('.VPNavBarHamburger').click();
  await page.getByRole('link', { name: 'Tutorial', exact: true }).waitFor();
  expect(await violationsOf(page)).toEqual([]);
  await page.screenshot({ path: join(screenshots, 'phone-menu.png') });
  await page.getByRole('link', { name: 'Tutorial', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: /Tutorial/ }).waitFor();
  expect(problems).toEqual([]);
  await page.context().close();
});

it('the version menu opens an older version, which links the newest one', async () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const { page, problems } = await open('/tutorial', DESKTOP);
  await page.getByLabel('Version of the documentation').selectOption('0.0');
  await page.waitForURL(`${server.url}/0.0/`);
  await page.goto(`${server.url}/0.0/static-files`);
  await page.getByText('This page describes version 0.0.').waitFor();
  expect(await violationsOf(page)).toEqual([]);
  await page.getByRole('link', { name: `Read the documentation of ${version}.` }).click();
  await page.waitForURL(`${server.url}/`);
  expect(problems).toEqual([]);
  await page.context().close();
});

it('examples/docs-site sends pages with a strict policy, files that never change as immutable, and a 404 page', async () => {
  const page = await fetch(`${server.url}/tutorial`);
  expect(page.headers.get('content-security-policy')).toMatch(
    /default-src 'none'; script-src 'self' 'sha256-/,
  );
  expect(page.headers.get('content-security-policy')).not.toMatch(/script-src[^;]*unsafe/);
  const etag = page.headers.get('etag') as string;
  expect((await fetch(`${server.url}/tutorial`, { headers: { 'If-None-Match': etag } })).status).toBe(304);
  const script = /src="(\/assets\/app\.[^"]+\.js)"/.exec(await page.text())?.[1] as string;
  const asset = await fetch(`${server.url}${script}`);
  expect(asset.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  // Requests do not wait for the compression.
  for (let coding: string | null = null; coding === null; ) {
    coding = (await fetch(`${server.url}${script}`)).headers.get('content-encoding');
  }
  const absent = await fetch(`${server.url}/absent`, {
    headers: { accept: 'text/html', 'sec-fetch-dest': 'document' },
  });
  expect([absent.status, await absent.text()]).toEqual([404, expect.stringContaining('404')]);
});

it('examples/docs-site sends the pages as Markdown to programs that ask for it, with links that lead to pages', async () => {
  for (const path of paths) {
    const accept = 'text/markdown, text/html;q=0.9';
    const response = await fetch(`${server.url}${path}`, { headers: { accept } });
    const { headers } = response;
    expect([path, headers.get('content-type')]).toEqual([path, 'text/markdown; charset=utf-8']);
    const base = new URL(String(headers.get('content-location')), `${server.url}${path}`);
    const text = (await response.text()).replace(/```[\s\S]*?```/g, '');
    const links = [...text.matchAll(/\]\(([^()\s]+)\)/g)].map(([, link = '']) => link);
    for (const link of links.filter((each) => !/^(?:#|[a-z]+:)/.test(each))) {
      const file = join(out, new URL(link, base).pathname);
      expect([path, link, existsSync(file)]).toEqual([path, link, true]);
    }
  }
  const { headers } = await fetch(`${server.url}/static-files`, { headers: { accept: 'text/html' } });
  expect(headers.get('link')).toBe('<./static-files.md>; rel="alternate"; type="text/markdown"');
});

it('examples/docs-site says how to build the pages if there are none', async () => {
  const { code, output } = await failExample('docs-site/server', {
    SITE_DIR: join(root, 'artifacts/absent'),
  });
  expect([code, output]).toEqual([1, expect.stringContaining('npm run build --prefix site')]);
});
