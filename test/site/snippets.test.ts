/** @tags once */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attachSubscriptions, graphqlHTTP } from 'espalier';
import express from 'express';
import { buildSchema } from 'graphql';
import WebSocket from 'ws';
import { atEnd, listen } from '../kit.ts';
import { freePort } from '../programs.ts';
import { root, type Snippet, snippets } from '../snippets.ts';
import { credentials, type ObjectStore, startObjectStore } from './object-store.ts';

// Code blocks with packages that only site/package.json installs.

const folder = join(root, 'site/.snippets');
const all = snippets('ts site');
const of = (page: string): Snippet[] => all.filter((snippet) => snippet.page === `docs/${page}.md`);
const running = new Set<ChildProcess>();

/** Code that uses what a snippet only declares. */
const USES: readonly [contains: string, code: string][] = [
  [
    'relay-runtime',
    `for await (const name of ['Relay']) {
      const text = 'query Q($name: String!) { hello(name: $name) }';
      const request = { id: null, cacheID: 'Q', name: 'Q', text, metadata: {}, operationKind: 'query' } as const;
      console.log(await network.execute(request, { name }, {}).toPromise());
      const live = { ...request, text: 'subscription Q { count(to: 3) }', operationKind: 'subscription' } as const;
      await new Promise<void>((complete) => network.execute(live, {}, {}).subscribe({ next: (result) => console.log(result), complete }));
      await sockets.dispose();
    }`,
  ],
  [
    'serverless-http',
    `const event = { version: '2.0', rawPath: '/graphql', rawQueryString: 'query={hello}', headers: { accept: '*/*' },
      requestContext: { http: { method: 'GET', path: '/graphql', sourceIp: '127.0.0.1' } }, isBase64Encoded: false };
    console.log(JSON.stringify(await handler(event, {})));`,
  ],
];

beforeAll(() => {
  if (!existsSync(join(root, 'site/node_modules'))) throw new Error('run npm ci --prefix site first');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
});

afterAll(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Writes a snippet with the port of a test, and starts it. */
function start({ name, code }: Snippet, port: number, env: Record<string, string> = {}): ChildProcess {
  const file = join(folder, `${name}-${port}.mts`);
  const use = USES.find(([contains]) => code.includes(contains))?.[1] ?? '';
  writeFileSync(file, `${code.replace(/(localhost:|listen\()3000/g, `$1${port}`)}\n${use}\nexport {};\n`);
  const args = ['--require', join(__dirname, 'setup.cjs'), '--import', 'tsx', file];
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, TSX_TSCONFIG_PATH: join(root, 'test/tsconfig.json'), ...env },
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

async function outputOf(child: ChildProcess): Promise<[string, number | null]> {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (output += text));
  const [code] = await once(child, 'close');
  return [output, code];
}

async function ready(url: string): Promise<void> {
  for (;;) {
    const response = await fetch(url).catch(() => undefined);
    if (response !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

it('every TypeScript snippet of the site compiles', () => {
  for (const { name, code } of all) writeFileSync(join(folder, `${name}.mts`), `${code}\nexport {};\n`);
  const config = {
    extends: '../../test/tsconfig.json',
    compilerOptions: {
      rootDir: '../..',
      noUnusedLocals: false,
      lib: ['es2023', 'dom', 'dom.iterable'],
      paths: { espalier: ['../../middleware/index.ts'], 'espalier/*': ['../../middleware/*.ts'] },
    },
    include: all.map(({ name }) => `${name}.mts`).concat('../../src/**/*.d.ts'),
    exclude: [],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  expect(all.length).toBeGreaterThan(7);
  expect(spawnSync(process.execPath, [tsc, '-p', folder], { cwd: root, encoding: 'utf8' }).stdout).toBe('');
});

describe('docs/clients.md', () => {
  let port: number;

  beforeAll(async () => {
    const schema = buildSchema(
      'type Query { hello(name: String!): String } type Subscription { count(to: Int!): Int }',
    );
    const rootValue = {
      hello: ({ name }: { name: string }) => `Hello ${name}`,
      async *count({ to }: { to: number }) {
        for (let count = 1; count <= to; count++) yield { count };
      },
    };
    const graphql = graphqlHTTP(schema, { rootValue });
    const listening = await listen(express().use('/graphql', graphql));
    const subscriptions = attachSubscriptions(listening.server, graphql);
    atEnd(() => subscriptions.close());
    port = listening.port;
  });

  it.each(of('clients').map((snippet) => [snippet.name, snippet] as const))(
    'the client of %s gets the results of its operations',
    async (_, snippet) => {
      const [output, code] = await outputOf(start(snippet, port));
      expect([code, output]).toEqual([0, expect.any(String)]);
      const name = /name: '(\w[\w-]*)' \}/.exec(snippet.code)?.[1];
      if (name !== undefined) expect(output).toContain(`Hello ${name}`);
      // urql reports the last result once more, as complete.
      if (snippet.code.includes('count(to: 3)'))
        expect([...new Set(output.match(/count: \d/g))]).toEqual(['count: 1', 'count: 2', 'count: 3']);
      expect(output).toMatch(/Hello|count/);
    },
  );
});

describe('docs/object-storage.md', () => {
  const [throughServer, direct] = of('object-storage') as [Snippet, Snippet];
  let store: ObjectStore;
  let env: Record<string, string>;

  beforeEach(async () => {
    store = await startObjectStore();
    env = { ...credentials, S3_ENDPOINT: store.url, S3_BUCKET: 'files' };
  });

  const PNG = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

  async function upload(port: number, content: Buffer, type: string): Promise<unknown> {
    const body = new FormData();
    const query = 'mutation ($file: Upload!) { addPicture(file: $file) }';
    body.set('operations', JSON.stringify({ query, variables: { file: null } }));
    body.set('map', JSON.stringify({ 0: ['variables.file'] }));
    body.set('0', new Blob([new Uint8Array(content)], { type }), 'picture.png');
    const response = await fetch(`http://localhost:${port}/graphql`, { method: 'POST', body });
    return response.json();
  }

  it('the server of docs/object-storage.md streams small and large files to the store', async () => {
    const port = await freePort();
    const child = start(throughServer, port, env);
    await ready(`http://localhost:${port}/`);
    for (const size of [1000, 12 * 1024 * 1024]) {
      const content = Buffer.concat([PNG, Buffer.alloc(size, 'picture')]);
      const result = (await upload(port, content, 'image/png')) as { data: { addPicture: string } };
      const object = store.objects.get(`/files/${result.data.addPicture}`);
      expect(object?.body.equals(content)).toBe(true);
    }
    expect(await upload(port, Buffer.from('text'), 'text/plain')).toMatchObject({
      errors: [{ extensions: { code: 'NO_PICTURE' } }],
    });
    const large = Buffer.concat([PNG, Buffer.alloc(50_000_001)]);
    expect(await upload(port, large, 'image/png')).toMatchObject({
      errors: [{ extensions: { code: 'FILE_TOO_LARGE' } }],
    });
    expect([store.objects.size, store.open.size, store.aborted.length]).toEqual([2, 0, 1]);
    child.kill();
  });

  it('the signed URL of docs/object-storage.md stores one object of the signed type and size', async () => {
    const port = await freePort();
    const child = start(direct, port, env);
    await ready(`http://localhost:${port}/`);
    const response = await fetch(`http://localhost:${port}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        query: 'mutation { createTarget(contentType: "image/png", size: 7) { key url } }',
      }),
    });
    const { data } = (await response.json()) as { data: { createTarget: { key: string; url: string } } };
    const { key, url } = data.createTarget;
    const put = async (body: string, type: string) =>
      (await fetch(url, { method: 'PUT', body, headers: { 'Content-Type': type } })).status;
    expect(await put('picture', 'text/html')).toBe(403);
    expect(await put('a longer picture', 'image/png')).toBe(403);
    expect(await put('picture', 'image/png')).toBe(200);
    expect(store.objects.get(`/files/${key}`)?.body.toString()).toBe('picture');
    child.kill();
  });
});

it('the function of docs/serverless.md responds to an event of an API gateway', async () => {
  const [output, code] = await outputOf(start(of('serverless')[0] as Snippet, 0));
  expect([code, output]).toEqual([0, expect.stringContaining('{')]);
  expect(JSON.parse(output)).toMatchObject({ statusCode: 200, body: '{"data":{"hello":"world"}}' });
});

describe('docs/cors.md', () => {
  const blocks = snippets('ts').filter(({ page }) => page === 'docs/cors.md');
  const files = new FormData();
  files.set('operations', JSON.stringify({ query: '{ hello }' }));
  files.set('map', '{}');

  /** Whether a page of an origin may open a socket. */
  async function connects(port: number, origin: string): Promise<boolean> {
    const socket = new WebSocket(`ws://localhost:${port}/graphql`, 'graphql-transport-ws', { origin });
    const connected = await new Promise<boolean>((resolve) => {
      socket.once('open', () => resolve(true));
      socket.once('error', () => resolve(false));
    });
    socket.terminate();
    return connected;
  }

  it('the server of docs/cors.md accepts pages of its origins only', async () => {
    const port = await freePort();
    const child = start(blocks[0] as Snippet, port);
    const url = `http://localhost:${port}/graphql`;
    await ready(url);
    const app = 'https://app.example.com';
    const preflight = {
      Origin: app,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'content-type',
    };
    const allowed = await fetch(url, { method: 'OPTIONS', headers: preflight });
    const names = [
      'access-control-allow-origin',
      'access-control-allow-credentials',
      'access-control-max-age',
    ];
    expect([allowed.status, ...names.map((name) => allowed.headers.get(name))]).toEqual([
      204,
      app,
      'true',
      '600',
    ]);
    const upload = async (Origin: string) =>
      (await fetch(url, { method: 'POST', body: files, headers: { Origin, 'Sec-Fetch-Site': 'cross-site' } }))
        .status;
    expect([await upload(app), await upload('https://other.example')]).toEqual([200, 403]);
    const sockets = [app, `http://localhost:${port}`, 'https://other.example'].map((origin) =>
      connects(port, origin),
    );
    expect(await Promise.all(sockets)).toEqual([true, true, false]);
    child.kill();
  });

  it('the settings of Vite in docs/cors.md forward requests, uploads and sockets of its pages', async () => {
    const [api, port] = [await freePort(), await freePort()];
    const graphql = graphqlHTTP(buildSchema('type Query { hello: String }'), {
      rootValue: { hello: 'world' },
    });
    const server = express().use('/graphql', graphql).listen(api);
    const subscriptions = attachSubscriptions(server, graphql);
    writeFileSync(join(folder, 'vite.config.mjs'), (blocks[1] as Snippet).code.replace(':3000', `:${api}`));
    const vite = join(root, 'site/node_modules/vite/bin/vite.js');
    const child = spawn(process.execPath, [vite, '--port', String(port), '--strictPort'], { cwd: folder });
    running.add(child);
    await ready(`http://localhost:${port}/`);
    const origin = `http://localhost:${port}`;
    const response = await fetch(`${origin}/graphql`, {
      method: 'POST',
      body: files,
      headers: { Origin: origin },
    });
    expect(await response.json()).toEqual({ data: { hello: 'world' } });
    expect(await connects(port, origin)).toBe(true);
    child.kill();
    await subscriptions.close();
    server.closeAllConnections();
    server.close();
  });
});

describe('docs/containers.md', () => {
  const parse = (text: string): unknown => {
    const { parseAllDocuments } = require(join(root, 'site/node_modules/yaml'));
    return parseAllDocuments(text, { strict: true }).map(
      (document: { errors: unknown[]; toJS(): unknown }) => {
        expect(document.errors).toEqual([]);
        return document.toJS();
      },
    );
  };
  const blocks = snippets('yaml').filter(({ page }) => page === 'docs/containers.md');
  const dockerfile = snippets('dockerfile').find(({ page }) => page === 'docs/containers.md')?.code ?? '';
  const text = readFileSync(join(root, 'docs/containers.md'), 'utf8');

  it('the compose file and the manifests of docs/containers.md agree with its server', () => {
    const [compose, manifests] = blocks.map(({ code }) => parse(code)) as [unknown[], unknown[]];
    const [, delay, timeout] = /delay: (\d+)_000, timeout: (\d+)_000/.exec(text) ?? [];
    expect(compose).toMatchObject([
      {
        services: {
          app: {
            read_only: true,
            tmpfs: ['/tmp'],
            healthcheck: { test: expect.arrayContaining(['http://127.0.0.1:3000/livez']) },
          },
        },
      },
    ]);
    const [deployment, service] = manifests as [
      {
        spec: {
          template: {
            metadata: { labels: object };
            spec: { terminationGracePeriodSeconds: number; containers: object[] };
          };
        };
      },
      { spec: { selector: object; ports: object[] } },
    ];
    const { spec, metadata } = deployment.spec.template;
    expect(spec.containers).toMatchObject([
      {
        ports: [{ name: 'http', containerPort: 3000 }],
        readinessProbe: { httpGet: { path: '/readyz', port: 'http' } },
        livenessProbe: { httpGet: { path: '/livez', port: 'http' } },
        securityContext: { runAsNonRoot: true, readOnlyRootFilesystem: true },
        volumeMounts: [{ mountPath: '/tmp' }],
      },
    ]);
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(Number(delay) + Number(timeout));
    expect([service.spec.selector, service.spec.ports]).toMatchObject([
      metadata.labels,
      [{ targetPort: 'http' }],
    ]);
    expect(dockerfile).toMatch(/USER node\n[\s\S]*EXPOSE 3000\nCMD \["node", "server.ts"\]/);
  });
});
