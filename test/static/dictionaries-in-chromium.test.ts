/** @tags once slow */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { availableCodings } from '../../src/static/dictionaries.ts';
import { LAUNCH_OPTIONS } from '../chromium.ts';
import { nodeOf } from '../programs.ts';

const root = resolve(__dirname, '../..');
const certificate = new X509Certificate(readFileSync(join(__dirname, '../fixtures/tls/cert.pem')));
const key = certificate.publicKey.export({ type: 'spki', format: 'der' });

/** A Node that compresses with dictionaries. */
const node = (): string => (availableCodings().length > 0 ? process.execPath : nodeOf(24));

let browser: Browser;
let folder: string;
let server: ChildProcess;

beforeAll(async () => {
  const spki = createHash('sha256').update(key).digest('base64');
  browser = await chromium.launch({
    ...LAUNCH_OPTIONS,
    args: [...LAUNCH_OPTIONS.args, `--ignore-certificate-errors-spki-list=${spki}`],
  });
});
afterAll(() => browser.close());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'espalier-dictionaries-'));
});
afterEach(async () => {
  const exited = once(server, 'exit');
  server.kill();
  await exited;
  rmSync(folder, { recursive: true });
});

async function serve(protocol: string): Promise<string> {
  const args = ['--import', 'tsx', join(__dirname, 'dictionary-server.mts'), folder, protocol];
  server = spawn(node(), args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = (await once(server.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  return `${protocol}://127.0.0.1:${port}`;
}

it.each(['http', 'https'])(
  'Chromium runs a new version of a bundle that it received as a difference over %s',
  async (protocol) => {
    const url = await serve(protocol);
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    const page = await context.newPage();
    const versionOf = () => page.evaluate(() => Reflect.get(globalThis, 'version'));
    await page.goto(url, { waitUntil: 'networkidle' });
    expect(await versionOf()).toBe(1);
    await page.request.get(`${url}/deploy`);
    // The first request with a dictionary starts the work. Chromium would store its response.
    const path = '/assets/app-22222222.js';
    const first = readFileSync(join(folder, 'assets/app-11111111.js'));
    const announced = {
      'accept-encoding': 'dcb, dcz',
      'available-dictionary': `:${createHash('sha256').update(first).digest('base64')}:`,
      'dictionary-id': '"app-11111111.js"',
    };
    const codingOf = async () =>
      (await page.request.get(url + path, { headers: announced })).headers()['content-encoding'];
    while (!/^dc[bz]$/.test(String(await codingOf()))) await page.waitForTimeout(50);
    const [response] = await Promise.all([
      page.waitForResponse((received) => received.url().endsWith(path)),
      page.goto(url, { waitUntil: 'networkidle' }),
    ]);
    expect(await versionOf()).toBe(2);
    const headers = await response.request().allHeaders();
    expect(headers).toMatchObject({
      'dictionary-id': '"app-11111111.js"',
      'available-dictionary': expect.stringMatching(/^:.{44}:$/),
    });
    expect((await response.allHeaders())['content-encoding']).toMatch(/^dc[bz]$/);
    const { responseBodySize } = await response.request().sizes();
    expect(responseBodySize).toBeLessThan(1000);
    await context.close();
  },
);
