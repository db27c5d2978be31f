// What all test files of a run share, over HTTP on this machine: one Chromium, which the process of Jest starts when a test first
// asks for it, and a folder. Jest calls the function before the run, and shared-teardown.mjs after it.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Chromium by its options. */
const browsers = new Map();
const server = createServer();
let folder;

export default async function setup() {
  server.on('request', async (req, res) => {
    try {
      const chunks = await req.toArray();
      res.end((await chromium(Buffer.concat(chunks).toString())).wsEndpoint());
    } catch (error) {
      res.writeHead(500).end(String(error));
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  server.unref();
  folder = mkdtempSync(join(tmpdir(), 'espalier-run-'));
  process.env.TEST_CHROMIUM = `http://127.0.0.1:${server.address().port}`;
  process.env.TEST_FOLDER = folder;
}

function chromium(options) {
  const started = browsers.get(options) ?? start(options);
  browsers.set(options, started);
  return started;
}

async function start(options) {
  const { chromium } = await import('playwright-core');
  const browser = await chromium.launchServer(JSON.parse(options));
  // The next test that asks gets another one.
  browser.once('close', () => browsers.delete(options));
  return browser;
}

export async function teardown() {
  await Promise.allSettled([...browsers.values()].map(async (browser) => (await browser).close()));
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
}
