/** @tags graphql slow */
import { execFile } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import express5 from 'express';
import express4 from 'express4';
import { versionInfo } from 'graphql';
import helmet from 'helmet';
import type { Browser, Page } from 'playwright-core';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { GraphiQLOptions } from '../../types/graphiql.ts';
import { type Ide, launch, visit } from '../chromium.ts';
import { needs } from '../programs.ts';
import { createSchema } from './schema.ts';
import { type Served, serve } from './serve.ts';

const execute = promisify(execFile);

/** The last requests of a first visit, in any order: the schema and the three workers. */
const FIRST_VISIT = [/^POST/, /editor\.worker/, /graphql\.worker/, /json\.worker/];

/** The texts of the editors with a contrast below 4.5:1 (WCAG 2.2, 1.4.3). */
const LOW_CONTRAST = `(() => {
  const parse = (colour) => { const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number); return { rgb: [r, g, b], a }; };
  const over = ({ rgb, a }, below) => rgb.map((value, index) => value * a + below[index] * (1 - a));
  const luminance = (rgb) => rgb.map((value) => value / 255)
    .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
  const background = (element) => element === null ? [255, 255, 255]
    : over(parse(getComputedStyle(element).backgroundColor), background(element.parentElement));
  const texts = [...document.querySelectorAll('.view-line span span, .line-numbers')].filter((each) => each.innerText.trim() !== '');
  const contrast = (element) => {
    const below = background(element);
    const [dark, light] = [luminance(below), luminance(over(parse(getComputedStyle(element).color), below))].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  if (texts.length < 10) return ['only ' + texts.length + ' texts'];
  return texts.filter((each) => contrast(each) < 4.5).map((each) => each.className + ': ' + each.innerText);
})()`;

/** The name of the focused element, and whether it is in the window and has a ring that is not transparent. */
const FOCUSED = `(() => {
  const element = document.activeElement;
  const isSearch = element.matches('[role=combobox]');
  const label = element.getAttribute('aria-label') ?? element.labels?.[0]?.innerText ?? element.innerText;
  const { left, top, right, bottom, width } = element.getBoundingClientRect();
  const isInside = width > 0 && left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
  const style = getComputedStyle(isSearch ? element.closest('.graphiql-doc-explorer-search') : element);
  const hasRing = style.outlineStyle === 'solid' && parseFloat(style.outlineWidth) >= 2 && style.outlineColor.startsWith('rgb(');
  return { name: isSearch ? 'Search' : label.trim(), isVisible: isInside && hasRing, isPage: element === document.body };
})()`;

interface Focused {
  readonly name: string;
  readonly isVisible: boolean;
  readonly isPage: boolean;
}

const focused = (page: Page): Promise<Focused> => page.evaluate(FOCUSED);

/** Presses a key until the element with a name has the focus, which has to be visible all the way. */
async function moveTo(page: Page, name: string, key = 'Tab'): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press(key);
    const { name: found, isVisible, isPage } = await focused(page);
    // After the last element comes the window of the browser, which is the page here.
    if (!isVisible && !isPage) throw new Error(`The focus on "${found}" is not visible`);
    if (found === name) return;
  }
  throw new Error(`${key} does not reach "${name}"`);
}

/** Waits until the element with a name has the focus. */
async function hasFocus(page: Page, name: string): Promise<void> {
  const deadline = Date.now() + 10_000;
  for (let found = ''; found !== name; found = (await focused(page)).name)
    if (Date.now() > deadline) throw new Error(`"${found}" has the focus, and not "${name}"`);
}

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

let browser: Browser;
let served: Served;
let ide: Ide | undefined;

beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());
afterEach(async () => {
  await ide?.page.context().close();
  await served.close();
  ide = undefined;
});

const open = async (path = '/graphql', options = {}): Promise<Ide> => {
  ide = await visit(browser, served.origin + path, options);
  return ide;
};
const posts = (): number => served.requests.filter((line) => line.startsWith('POST')).length;
const link = (query: string, more = ''): string => `query=${encodeURIComponent(query)}${more}`;

// With graphql 17 under Express 4, so that the combinations of npm run test:all cover both.
const express = versionInfo.major === 17 ? (express4 as unknown as typeof express5) : express5;

describe('a GraphiQL with an attached WebSocket server', () => {
  const { schema, tap } = createSchema();
  let sockets = 0;

  beforeEach(async () => {
    const handler = graphqlHTTP(schema, { context: (req: IncomingMessage) => req });
    served = await serve(express().use('/graphql', handler));
    attachSubscriptions(served.server, schema);
    sockets = 0;
    served.server.on('upgrade', () => sockets++);
  });

  it('GraphiQL runs a typed query and a mutation within the size budgets of a first visit and a reload', async () => {
    const { page, query, response, received, problems, write, run, textOf } = await open();
    await query.click();
    await page.keyboard.press('Control+A');
    await page.keyboard.type('{ hello ');
    await page.keyboard.press('Control+Enter');
    await response.getByText('"Hello world"').waitFor();
    // Completion shows icons, so the size of their font counts.
    await received(...FIRST_VISIT, /codicon/);
    expect(served.requests.length).toBeLessThanOrEqual(18);
    // When the schema arrives before this worker has loaded, Monaco starts it again, which may download it again.
    const repeated = served.requests.filter((line) => /graphql\.worker/.test(line)).length - 1;
    expect(served.sent()).toBeLessThanOrEqual(1_300_000 + repeated * 115_000);

    await write('mutation Kept { rename(to: "Ada") }');
    await run.click();
    await response.getByText('"Renamed to Ada"').waitFor();
    // GraphiQL stores its tabs half a second after the last change.
    await page.waitForFunction(() =>
      Object.keys(localStorage).some((key) => key.endsWith('tabState') && localStorage[key].includes('Kept')),
    );

    const [sent, requested] = [served.sent(), served.requests.length];
    const schemaAgain = page.waitForResponse((reply) => reply.request().method() === 'POST');
    await page.reload();
    await query.getByText('Kept').waitFor();
    await schemaAgain;
    expect(await textOf(query)).toContain('mutation Kept { rename(to: "Ada") }');
    expect(served.sent() - sent).toBeLessThanOrEqual(30_000);
    // Only the page and the introspection are requested again. All other files are immutable.
    expect(served.requests.slice(requested)).toEqual(['GET /graphql', 'POST /graphql']);
    expect(problems).toEqual([]);
  });

  it('GraphiQL shows a linked operation without running it and sends edited headers', async () => {
    const linked = link(
      'query($name: String) { hello(name: $name) authorization }',
      '&variables={"name":"you"}',
    );
    const { query, response, run, received, writeHeaders, problems } = await open(`/graphql?${linked}`);
    await query.getByText('$name').first().waitFor();
    await received(/^POST/);
    // Introspection alone.
    expect(posts()).toBe(1);
    await writeHeaders({ Authorization: 'Bearer t0k' });
    await run.click();
    await response.getByText('"Hello you"').waitFor();
    await response.getByText('"Bearer t0k"').waitFor();
    expect(problems).toEqual([]);
  });

  it('GraphiQL shows how to run an operation, then the status, time and size of the response', async () => {
    const { page, run } = await open(`/graphql?${link('{ hello }')}`);
    const line = page.locator('.status-line');
    await line.getByText('-Enter runs the operation').waitFor();
    await page.getByText('The response appears here.').waitFor();
    await run.click();
    await line.getByText(/^200 OK \u00b7 \d+ ms \u00b7 \d+ B$/).waitFor();
  });

  it('GraphiQL shows the number of events of a subscription and the time of the last one', async () => {
    const { page, run } = await open(`/graphql?${link('subscription { count }')}`);
    const subscribed = once(tap, 'subscribed');
    await run.click();
    await subscribed;
    tap.emit('count', 1);
    tap.emit('count', 2);
    const line = page.locator('.status-line');
    await line.getByText(/^2 events \u00b7 last at \d.* \u00b7 open$/).waitFor();
    await run.click();
    await line.getByText(/^2 events \u00b7 last at \d.* \u00b7 ended$/).waitFor();
  });

  it('GraphiQL shows the response below the editor on a phone, and a side panel instead of both', async () => {
    const phone = { viewport: { width: 390, height: 844 }, isMobile: true };
    const { page, query, response, run, problems } = await open(`/graphql?${link('{ hello }')}`, phone);
    await run.click();
    await response.getByText('"Hello world"').waitFor();
    const [editor, reply] = [await query.boundingBox(), await response.boundingBox()];
    expect(reply?.y).toBeGreaterThan((editor?.y ?? 0) + (editor?.height ?? 0) - 1);
    expect(reply?.width).toBeGreaterThan(250);
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    await response.waitFor({ state: 'hidden' });
    expect((await page.locator('.graphiql-plugin').boundingBox())?.width).toBeGreaterThan(300);
    await page.getByRole('button', { name: 'Hide Documentation Explorer' }).click();
    await response.waitFor();
    expect(problems).toEqual([]);
  });

  it('GraphiQL on a phone has its icons in a bar at the bottom, a button that closes the panel, and hints without keys', async () => {
    const { page, query, response, problems } = await open('/graphql', PHONE);
    await query.getByText('in the bar below').waitFor();
    await page.locator('.status-line').getByText('runs the operation').waitFor();
    expect(await page.locator('#graphiql').innerText()).not.toContain('Ctrl');
    const bar = await page.locator('.graphiql-sidebar').boundingBox();
    expect([bar?.x, bar?.width, (bar?.y ?? 0) + (bar?.height ?? 0)]).toEqual([0, 390, 844]);
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    await response.waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Close Documentation Explorer' }).click();
    await response.waitFor();
    expect(await page.getByRole('button', { name: /^Close/ }).count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it('a tab of GraphiQL has the name of the operation, or of its first field', async () => {
    const { page, write } = await open();
    for (const [text, name] of [
      ['{ books { title } }', 'books'],
      ['# { authorization }\n{ mine: hello }', 'hello'],
      ['query ($name: String = "{ x") { hello(name: $name) }', 'hello'],
      ['query Mine { hello }', 'Mine'],
    ] as const) {
      await write(text);
      await page.getByRole('tab', { name, exact: true }).waitFor();
    }
  });

  it.each(['light', 'dark'] as const)(
    'the text of the editors of GraphiQL has the contrast of WCAG AA in %s colours, numbers of lines and comments included',
    async (colorScheme) => {
      const { page, response, run, query } = await open('/graphql', { colorScheme });
      await query.getByText('A first query from your schema').waitFor();
      await run.click();
      await response.getByText('"Hello world"').waitFor();
      await page
        .locator('.monaco-editor .view-line .mtk8, .monaco-editor .view-line .mtk9')
        .first()
        .waitFor();
      expect(await page.evaluate(LOW_CONTRAST)).toEqual([]);
      expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
    },
  );

  it('GraphiQL selects no deprecated field of a type when it completes a selection', async () => {
    const { page, query, response, run, write, textOf } = await open();
    await page.getByRole('tab', { name: 'hello' }).waitFor();
    await write('query { books }');
    await run.click();
    await response.getByText('"Walden"').waitFor();
    expect((await textOf(query)).replaceAll(/\s+/g, ' ')).toContain('books { title pages }');
  });

  it('GraphiQL streams subscriptions when its path ends with a slash', async () => {
    const { write, run, response, problems } = await open('/graphql/?tenant=x');
    await write('subscription { token }');
    await run.click();
    await response.getByText('"no token"').waitFor();
    expect(problems).toEqual([]);
  });

  it('GraphiQL streams subscriptions over one connection for each set of headers', async () => {
    const { response, run, write, writeHeaders, problems } = await open();
    await write('subscription { count }');
    await Promise.all([once(tap, 'subscribed'), run.click()]);
    for (const count of [1, 2, 3]) {
      tap.emit('count', count);
      await response.getByText(String(count), { exact: true }).waitFor();
    }
    await run.click();
    await write('subscription { token }');
    await run.click();
    await response.getByText('"no token"').waitFor();
    expect(sockets).toBe(1);
    await writeHeaders({ Authorization: 'Bearer t0k' });
    await run.click();
    await response.getByText('"Bearer t0k"').waitFor();
    expect(sockets).toBe(2);
    expect(problems).toEqual([]);
  });
});

describe('the GraphiQL page', () => {
  const { schema } = createSchema();
  const serveWith = async (graphiql: GraphiQLOptions | true, ...before: express5.RequestHandler[]) => {
    const app = express5();
    for (const middleware of before) app.use(middleware);
    served = await serve(app.use(['/graphql', '/other'], graphqlHTTP(schema, { graphiql })));
  };

  it('GraphiQL completes fields, shows documentation and keeps a history', async () => {
    await serveWith(true);
    const { page, query, response, write, problems } = await open();
    await write('query ');
    await page.keyboard.type('{ boo');
    await page.locator('.suggest-widget').getByText('books').waitFor();
    await page.keyboard.press('Enter');
    const word = query.locator('.view-lines').getByText('books');
    await word.waitFor();
    await page.keyboard.type(' { title ');
    await query.locator('.view-lines').getByText('title').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+Enter');
    await response.getByText('"Walden"').waitFor();
    const docs = page.locator('.graphiql-doc-explorer');
    const type = docs.getByText('Book', { exact: true });
    // The editor replaces the word when Control is pressed, so a click may be lost.
    for (let attempt = 0; attempt < 5 && !(await type.isVisible()); attempt++) {
      await word.click({ modifiers: ['Control'], force: true, timeout: 2000 }).catch(() => undefined);
      await type.waitFor({ timeout: 2000 }).catch(() => undefined);
    }
    await type.click();
    await docs.locator('em', { hasText: 'printed' }).waitFor();
    // The history stores the tab, which follows the editor with a delay, so the second run is tested.
    await query.click();
    await page.keyboard.press('Control+Enter');
    await page.getByRole('button', { name: 'Show History' }).click();
    await page.locator('.graphiql-history').getByText('books').first().waitFor();
    expect(problems).toEqual([]);
  });

  it.each([
    { visitor: 'light', shown: 'light' },
    { visitor: 'dark', shown: 'dark' },
  ] as const)('GraphiQL is $shown for a visitor who prefers $visitor', async ({ visitor, shown }) => {
    await serveWith({});
    const { page, problems } = await open('/graphql', { colorScheme: visitor });
    const colours = ['html', '.graphiql-container'].map((selector) =>
      page.locator(selector).evaluate((element) => getComputedStyle(element).backgroundColor),
    );
    const expected = shown === 'dark' ? 'rgb(33, 42, 59)' : 'rgb(255, 255, 255)';
    expect(await Promise.all(colours)).toEqual([expected, expected]);
    expect(problems).toEqual([]);
  });

  it('GraphiQL works after helmet, whose policy it replaces with its own', async () => {
    await serveWith({}, helmet());
    const { response, run, write, problems } = await open();
    await write('query { hello }');
    await run.click();
    await response.getByText('"Hello world"').waitFor();
    expect(problems).toEqual([]);
  });

  it('GraphiQL explains how to attach a WebSocket without a WebSocket server', async () => {
    await serveWith(true);
    const { response, run, write } = await open();
    await write('subscription { count }');
    await run.click();
    await response.getByText('attachSubscriptions').waitFor();
  });

  it('GraphiQL stores tabs per endpoint and creates links with a fragment', async () => {
    await serveWith(true);
    const { page, write, problems } = await open('/graphql/', {
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    await write('query Mine { hello }\nquery Yours { hello(name: "you") }');
    await page.getByRole('tab', { name: 'Mine' }).waitFor();
    await page.getByRole('button', { name: 'Copy a link to this operation' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const copied = new URL(await page.evaluate(() => navigator.clipboard.readText()));
    expect(copied.pathname + copied.search).toBe('/graphql/');
    expect(problems).toEqual([]);

    const linked = new URLSearchParams(copied.hash.slice(1));
    expect(linked.get('operationName')).toBe('Mine');
    linked.set('operationName', 'Yours');

    const elsewhere = await page.context().newPage();
    await elsewhere.goto(`${served.origin}/other`);
    await elsewhere.locator('.graphiql-query-editor').getByText('A first query from your schema').waitFor();
    await elsewhere.goto(`${served.origin}/graphql#${linked}`);
    const editor = elsewhere.locator('.graphiql-query-editor .monaco-editor').first();
    await editor.getByText('Yours').waitFor();
    await elsewhere.keyboard.press('Control+Enter');
    await elsewhere.locator('.graphiql-response').getByText('"Hello you"').waitFor();
  });

  it('GraphiQL never runs markup or scripts in an option or a link', async () => {
    const malicious = `</script><script>alert(1)</script><img src=x onerror=alert(1)>\u2028"'\`-->`;
    await serveWith({ defaultQuery: malicious });
    const encoded = encodeURIComponent(malicious);
    const { page, query, textOf, problems } = await open(
      `/graphql?query=${encoded}&variables=${encoded}&x=${encoded}`,
    );
    expect(await textOf(query)).toContain('</script><script>alert(1)</script>');
    expect(await page.locator('script:not([src]):not([type="application/json"]), img[src=x]').count()).toBe(
      0,
    );
    expect(problems).toEqual([]);
  });

  it('GraphiQL works behind a proxy that strips a prefix, with and without a trailing slash', async () => {
    await serveWith(true);
    const { port } = served.server.address() as AddressInfo;
    const proxy = await serve((req, res) => {
      const { method, headers, url = '' } = req;
      const onward = request({ port, method, headers, path: url.replace('/behind', '') }, (reply) => {
        res.writeHead(reply.statusCode ?? 502, reply.headers);
        reply.pipe(res);
      });
      req.pipe(onward);
    });
    for (const path of ['/behind/graphql', '/behind/graphql/']) {
      const { response, run, write, problems, page } = await visit(browser, proxy.origin + path);
      await write('query { hello }');
      await run.click();
      await response.getByText('"Hello world"').waitFor();
      expect(problems).toEqual([]);
      await page.context().close();
    }
    await proxy.close();
  });

  needs('curl').it(
    'GraphiQL sends files that are selected in a dialog, which has a curl command to copy',
    async () => {
      await serveWith(true);
      const { page, response, run, write, problems } = await open('/graphql', {
        permissions: ['clipboard-read', 'clipboard-write'],
      });
      const dialog = page.locator('.upload-dialog');
      const file = (name: string) => ({
        name,
        mimeType: 'text/plain',
        buffer: Buffer.from(name.toUpperCase()),
      });
      await write('mutation Sends($file: Upload!, $files: [Upload!]!) { send(file: $file, files: $files) }');
      await page.getByRole('tab', { name: 'Sends' }).waitFor();
      await run.click();
      await dialog.getByRole('button', { name: 'Copy curl command' }).click();
      await dialog.getByRole('button', { name: 'Copied' }).waitFor();
      const command = await page.evaluate(() => navigator.clipboard.readText());
      const runnable = command.replaceAll('@path/to/file', `@${__filename}`);
      const { stdout } = await execute('sh', ['-c', runnable], { maxBuffer: 2 ** 22 });
      expect(JSON.parse(stdout).data.send).toContain('in-chromium.test.ts: import');

      await page.evaluate(() => {
        const seen = new MutationObserver((records) => {
          const added = records.flatMap(({ addedNodes }) => [...addedNodes]);
          if (added.some((node) => node.nodeName === 'PROGRESS')) document.body.dataset['progress'] = 'shown';
        });
        seen.observe(document.body, { childList: true });
      });
      // A required file is missing: the dialog stays open.
      await dialog.getByRole('button', { name: 'Send' }).click();
      await dialog.getByLabel('$file', { exact: true }).setInputFiles(file('a'));
      await dialog.getByLabel('$files').setInputFiles([file('b'), file('c')]);
      await dialog.getByRole('button', { name: 'Send' }).click();
      await response.getByText('a: A, b: B, c: C').waitFor();
      expect(await page.locator('body').getAttribute('data-progress')).toBe('shown');
      expect(await page.locator('progress').count()).toBe(0);

      await run.click();
      await dialog.getByRole('button', { name: 'Cancel' }).click();
      await response.getByText('no files were selected').waitFor();
      expect(problems).toEqual([]);
    },
  );

  it('GraphiQL starts with a query from the schema, and its shortcuts work on Linux and Windows', async () => {
    await serveWith(true);
    const { page, query, response, write, textOf, problems } = await open();
    const textIs = async (editor: typeof query, accepts: (text: string) => boolean): Promise<void> => {
      while (!accepts(await textOf(editor))) await page.waitForTimeout(20);
    };
    await query.getByText('A first query from your schema').waitFor();
    await query.click();
    await page.keyboard.press('Control+Enter');
    await response.getByText('"Hello world"').waitFor();
    await write('query Q{hello(name:"Ada")...F} fragment F on Query{authorization}');
    await page.keyboard.press('Control+Shift+KeyM');
    await textIs(query, (text) => !text.includes('fragment'));
    await write('query Q{hello(name:"Ada")}');
    await page.keyboard.press('Control+Shift+KeyP');
    await textIs(query, (text) => text.includes('hello(name: "Ada")'));
    expect(problems).toEqual([]);
  });

  it.each([
    ['desktop', {}],
    ['phone', PHONE],
  ])(
    'GraphiQL runs an operation, searches, and opens and closes its panels with the keyboard alone on a %s',
    async (_name, options) => {
      await serveWith(true);
      const { page, query, response, problems } = await open('/graphql', options);
      const title = page.locator('.graphiql-doc-explorer-title');
      await query.getByText('A first query from your schema').waitFor();
      await moveTo(page, 'Operation');
      await page.keyboard.press('Enter');
      await page.keyboard.press('Control+Enter');
      await response.getByText('"Hello world"').waitFor();
      await page.keyboard.press('Escape');
      await hasFocus(page, 'Operation');
      await moveTo(page, 'Execute query (Ctrl-Enter)');

      await moveTo(page, 'Show Documentation Explorer', 'Shift+Tab');
      await page.keyboard.press('Enter');
      await moveTo(page, 'Search');
      await page.keyboard.type('books');
      // Until it has searched, the list has all names.
      await page.getByRole('option', { name: 'Book', exact: true }).waitFor({ state: 'detached' });
      await page.getByRole('option', { name: 'Query.books' }).waitFor();
      await page.keyboard.press('Enter');
      await title.getByText('books').waitFor();
      await hasFocus(page, 'Go back to Docs');
      await moveTo(page, 'Book');
      await page.keyboard.press('Enter');
      await title.getByText('Book', { exact: true }).waitFor();
      await hasFocus(page, 'title');
      await page.keyboard.press('Escape');
      await hasFocus(page, 'Show Documentation Explorer');

      await moveTo(page, 'Show History');
      await page.keyboard.press('Enter');
      await moveTo(page, 'Edit label');
      await page.keyboard.press('Enter');
      await page.keyboard.type('Mine');
      await page.keyboard.press('Escape');
      await hasFocus(page, 'Set active');
      await page.keyboard.press('Escape');
      await hasFocus(page, 'Show History');

      await moveTo(page, 'Open settings dialog');
      await page.keyboard.press('Enter');
      await hasFocus(page, 'Close dialog');
      await moveTo(page, 'Clear data');
      await page.keyboard.press('Enter');
      await hasFocus(page, 'Close dialog');
      await page.keyboard.press('Escape');
      await hasFocus(page, 'Open settings dialog');
      expect(problems).toEqual([]);
    },
  );

  it.each([
    ['desktop', {}],
    ['phone', PHONE],
  ])(
    'Tab moves through all of GraphiQL on a %s, and the arrow keys between its tabs',
    async (_name, options) => {
      await serveWith(true);
      const { page, problems } = await open('/graphql', options);
      await moveTo(page, 'New tab');
      await page.keyboard.press('Enter');
      await moveTo(page, '<untitled>', 'Shift+Tab');
      await page.keyboard.press('ArrowLeft');
      await hasFocus(page, 'hello');
      await page.keyboard.press('ArrowLeft');
      await hasFocus(page, '<untitled>');
      await moveTo(page, 'Close Tab');
      await page.keyboard.press('Enter');
      await hasFocus(page, 'hello');
      await moveTo(page, 'Show editor tools');
      await page.keyboard.press('Enter');
      const names: string[] = [];
      const start = 'Hide editor tools';
      await hasFocus(page, start);
      do {
        await page.keyboard.press('Tab');
        names.push((await focused(page)).name);
      } while (names.at(-1) !== start && names.length < 40);
      expect(names).toEqual(
        expect.arrayContaining([
          'Operation',
          'Variables',
          'Response',
          'Copy a link to this operation',
          start,
        ]),
      );
      expect(problems).toEqual([]);
    },
  );

  it('Escape first ends what the editor of GraphiQL shows, then leaves the editor', async () => {
    await serveWith(true);
    const { page, query, write } = await open();
    await write('query ');
    await page.keyboard.type('{ boo');
    const widget = page.locator('.suggest-widget').getByText('books');
    await widget.waitFor();
    await page.keyboard.press('Escape');
    await widget.waitFor({ state: 'hidden' });
    await page.keyboard.press('Tab');
    expect(await query.getByText('boo').count()).toBe(1);
    expect((await focused(page)).name).toBe('Operation. Escape leaves the editor.');
    await page.keyboard.press('Escape');
    await hasFocus(page, 'Operation');
  });

  it('GraphiQL uploads a file that is selected with the keyboard, and cancels with Escape', async () => {
    await serveWith(true);
    const { page, response, write } = await open();
    await write('mutation Sends($file: Upload!) { send(file: $file) }');
    await page.getByRole('tab', { name: 'Sends' }).waitFor();
    await page.keyboard.press('Control+Enter');
    await hasFocus(page, '$file');
    const chosen = page.waitForEvent('filechooser');
    await page.keyboard.press('Space');
    await (await chosen).setFiles({ name: 'a', mimeType: 'text/plain', buffer: Buffer.from('A') });
    await moveTo(page, 'Send');
    await page.keyboard.press('Enter');
    await response.getByText('a: A').waitFor();
    await hasFocus(page, 'Operation. Escape leaves the editor.');
    await page.keyboard.press('Control+Enter');
    await page.locator('.upload-dialog').waitFor();
    await page.keyboard.press('Escape');
    await response.getByText('no files were selected').waitFor();
    await hasFocus(page, 'Operation. Escape leaves the editor.');
  });

  it('GraphiQL says that the server cannot be reached', async () => {
    await serveWith(true);
    const { response, run, write, textOf } = await open();
    await write('query { hello }');
    await run.click();
    await response.getByText('"Hello world"').waitFor();
    const { origin } = served;
    await served.close();
    served = await serve(express5());
    await run.click();
    await response.getByText('The server at').waitFor();
    const shown = (await textOf(response)).replaceAll(/\s/g, '');
    expect(shown).toContain(`${origin}/graphql`);
    expect(shown).toContain('cannotbereached');
    expect(shown).not.toContain('stack');
  });

  it('GraphiQL shows errors, and each part of an incremental response when it arrives', async () => {
    const api = express5().use(express5.json());
    const parts = new EventEmitter();
    api.post('/api', async ({ body, headers }, res, next) => {
      if (body.operationName === 'Broken') res.status(502).send('<h1>Bad gateway</h1>');
      else if (body.operationName === 'Denied') res.status(401).json({ message: 'Who are you?' });
      else if (body.operationName === 'Deferred') {
        expect(headers.accept).toContain('multipart/mixed');
        res.type('multipart/mixed; boundary="-"');
        const part = (data: object) =>
          `\r\nContent-Type: application/json\r\n\r\n${JSON.stringify(data)}\r\n---`;
        res.write(`---${part({ data: { hello: 'first' }, hasNext: true })}`);
        await once(parts, 'rest');
        res.end(
          `${part({ incremental: [{ path: [], data: { authorization: 'later' } }], hasNext: false })}--\r\n`,
        );
      } else next();
    });
    api.use('/api', graphqlHTTP(schema));
    await serveWith({ endpoint: '/api' }, api);
    const { page, response, run, write } = await open();
    const reply = async (query: string, ...expected: string[]): Promise<void> => {
      await write(query);
      await page
        .getByRole('tab', { name: /(?:query|mutation|subscription) (\w+)/.exec(query)?.[1] ?? '' })
        .waitFor();
      await run.click();
      for (const text of expected) await response.getByText(text).first().waitFor();
    };
    await reply('query Broken { hello }', 'HTTP 502 Bad Gateway');
    await reply('query Denied { hello }', 'HTTP 401 Unauthorized', 'Who are you?');
    await reply('subscription Counts { count }', 'could not be opened');
    await reply('query Deferred { hello ... @defer { authorization } }', '"first"');
    parts.emit('rest');
    await response.getByText('"later"').waitFor();
  });
});
