import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type LaunchOptions,
  type Locator,
  type Page,
} from 'playwright-core';

/**
 * Options that start Chromium. It can only reach this machine, also as localhost and under names like `api.test`, so that a
 * page that needs a CDN fails.
 */
export const LAUNCH_OPTIONS: LaunchOptions & { readonly args: readonly string[] } = {
  executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
  args: [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--host-resolver-rules=MAP localhost 127.0.0.1, MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
  ],
};

/** Starts a Chromium for one test file: one for the whole run closed while tests of several files used it. */
export const launch = (): Promise<Browser> => chromium.launch(LAUNCH_OPTIONS);

/** Opens a page with an empty cache and storage, and collects its problems. */
export async function visit(browser: Browser, url: string, options: BrowserContextOptions = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('console', (message) => problems.push(`console ${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => problems.push(`error: ${error.stack}`));
  page.on('requestfailed', (request) => {
    // A reload cancels open requests of the previous page, such as the script of a worker.
    const reason = request.failure()?.errorText;
    if (reason !== 'net::ERR_ABORTED') problems.push(`failed: ${request.url()}: ${reason}`);
  });
  const finished: string[] = [];
  page.on('requestfinished', (request) => finished.push(`${request.method()} ${request.url()}`));
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`${response.status()}: ${response.url()}`);
  });
  await page.goto(url);
  /** Resolves when a request has finished for each of the patterns. */
  const received = async (...patterns: RegExp[]): Promise<void> => {
    while (!patterns.every((pattern) => finished.some((line) => pattern.test(line)))) {
      await page.waitForEvent('requestfinished');
    }
  };
  const ide = { page, problems, received, ...parts(page) };
  await ide.query.waitFor();
  return ide;
}

export type Ide = Awaited<ReturnType<typeof visit>>;

function parts(page: Page) {
  const query = page.locator('.graphiql-query-editor .monaco-editor').first();
  const replace = async (editor: Locator, text: string): Promise<void> => {
    await editor.click();
    await page.keyboard.press('Control+A');
    await page.keyboard.insertText(text);
  };
  return {
    query,
    response: page.locator('.graphiql-response'),
    run: page.locator('.graphiql-execute-button'),
    /** Replaces the text of the query editor. */
    write: (text: string) => replace(query, text),
    /** Opens the headers editor and replaces its text. */
    async writeHeaders(headers: object) {
      await page.getByRole('button', { name: 'Headers', exact: true }).click();
      await replace(
        page.locator('.graphiql-editor-tool .monaco-editor:visible').first(),
        JSON.stringify(headers),
      );
    },
    /** The text of an editor, with Monaco's non-breaking spaces as ordinary ones. */
    textOf: async (editor: Locator) => (await editor.allInnerTexts()).join('').replaceAll('\u00a0', ' '),
  };
}
