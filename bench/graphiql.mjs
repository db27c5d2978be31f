// GraphiQL pages in Chromium: a first visit with an empty cache, then a reload, over the loopback device.
import { runTopic } from './harness.mjs';

const FLAGS =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking '
    .concat('--disable-component-update --disable-sync')
    .split(' ');

async function api(options) {
  const [{ graphqlHTTP }, { buildSchema }] = await Promise.all([
    import('espalier/graphql'),
    import('graphql'),
  ]);
  const schema = buildSchema('type Query { hello: String }');
  return graphqlHTTP(schema, { rootValue: { hello: 'Hello world' }, ...options });
}

async function app() {
  return (await import('express')).default();
}

/** Visits a page `count` times with an empty cache, then reloads it. Usable: a typed query has its result. */
async function visits({ port, count }) {
  const { chromium } = await import('playwright-core');
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
    args: [...FLAGS, '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
  });
  const began = performance.now();
  const first = [];
  const again = [];
  try {
    for (let visit = 0; visit < count; visit++) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
      const page = await context.newPage();
      first.push(await use(page, () => page.goto(`http://127.0.0.1:${port}/graphql`)));
      again.push(await use(page, () => page.reload()));
      await context.close();
    }
  } finally {
    await browser.close();
  }
  const figures = (name, all) => ({
    [`${name}: usable, ms`]: median(all.map(({ usable }) => usable)),
    [`${name}: kB`]: median(all.map(({ bytes }) => bytes)) / 1000,
    [`${name}: requests`]: median(all.map(({ requests }) => requests)),
  });
  const seconds = (performance.now() - began) / 1000;
  return { operations: count, seconds, ...figures('first visit', first), ...figures('reload', again) };
}

async function use(page, go) {
  const began = performance.now();
  await go();
  const editor = page.locator('.graphiql-query-editor .monaco-editor .view-line').first();
  await editor.click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText('query { hello }');
  await page.keyboard.press('Control+Enter');
  await page.locator('.graphiql-response, .result-window').getByText('"Hello world"').first().waitFor();
  const usable = performance.now() - began;
  // Workers and fonts load late and are part of a visit.
  await page.waitForTimeout(1500);
  const entries = await page.evaluate(() =>
    ['navigation', 'resource'].flatMap((type) =>
      performance.getEntriesByType(type).map(({ transferSize }) => transferSize),
    ),
  );
  const fetched = entries.filter((bytes) => bytes > 0);
  return { usable, bytes: fetched.reduce((sum, bytes) => sum + bytes, 0), requests: fetched.length };
}

function median(values) {
  return values.toSorted((a, b) => a - b)[values.length >> 1];
}

const figures = ['usable, ms', 'kB', 'requests'];

export const topic = {
  name: 'graphiql',
  title: 'GraphiQL',
  about:
    'The page in Chromium over the loopback device, from the navigation to the result of a typed query: with an empty cache, ' +
    'and after a reload. Bytes and requests are counted by the browser, workers included. Both use the same schema.',
  packages: ['ruru'],
  ratios: ['ruru'],
  contestants: {
    espalier: async () => (await app()).use('/graphql', await api()),
    ruru: async () => {
      const [{ ruruHTML }, { serveStatic }] = await Promise.all([
        import('ruru/server'),
        import('ruru/static'),
      ]);
      const html = ruruHTML({ staticPath: '/static/', endpoint: '/graphql' });
      const page = (req, res, next) => (req.accepts(['json', 'html']) === 'html' ? res.send(html) : next());
      return (await app())
        .use(serveStatic('/static/'))
        .get('/graphql', page)
        .use('/graphql', await api({ graphiql: false }));
    },
  },
  loads: [
    {
      name: 'a visit and a reload',
      unit: 'visit',
      connections: 1,
      count: 3,
      warmup: 1,
      drive: visits,
      columns: ['first visit', 'reload'].flatMap((when) => figures.map((figure) => `${when}: ${figure}`)),
    },
  ],
};

await runTopic(import.meta.url, topic);
