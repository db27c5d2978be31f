/** @tags once */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import express from 'express';
import { GraphQLInt, GraphQLNonNull, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { attachSubscriptions, graphqlHTTP, Upload, type UploadedFile } from '../../middleware/index.ts';
import { freePort, isAvailable, startProgram } from '../programs.ts';
import { root, type Snippet, snippets } from '../snippets.ts';

const PAGE = 'docs/deployment.md';
const folder = mkdtempSync(join(tmpdir(), 'espalier-proxies-'));

const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: { hello: { type: GraphQLString, resolve: () => 'world' } },
  }),
  mutation: new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      greet: { type: GraphQLString, resolve: () => 'hello' },
      measure: {
        type: GraphQLInt,
        args: { file: { type: new GraphQLNonNull(Upload) } },
        resolve: async (_root, { file }: { file: UploadedFile }) => file.size,
      },
    },
  }),
});

/** The n-th block of the page in a language, with the ports of this test. */
function blockOf(language: string, { listen, upstream }: Ports, index = 0): string {
  const blocks = snippets(language).filter(({ page }) => page === PAGE);
  return (blocks[index] as Snippet).code
    .replace('listen 80;', `listen 127.0.0.1:${listen};`)
    .replace('bind :80', `bind 127.0.0.1:${listen}`)
    .replace('example.com {', `http://wall.test:${listen} {\n  bind 127.0.0.1`)
    .replaceAll(':3000', `:${upstream}`);
}

interface Ports {
  readonly listen: number;
  readonly upstream: number;
}

/** A reverse proxy, its configuration from the page, and the setting `trust proxy` of the app. */
interface Proxy {
  readonly name: string;
  readonly program: string;
  readonly trust: boolean | string;
  configuration(ports: Ports): string;
  args(file: string): string[];
}

function nginx(http: string): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  return `daemon off; pid ${join(folder, 'pid')}; error_log stderr; events {}
    http { access_log off; ${paths.join(' ')}\n${http} }`;
}
const nginxProgram = {
  program: 'nginx',
  args: (file: string) => ['-p', folder, '-c', file],
};

const proxies: Proxy[] = [
  {
    name: 'nginx',
    ...nginxProgram,
    trust: false,
    configuration: (ports) => nginx(blockOf('nginx', ports)),
  },
  {
    name: 'nginx with another Host',
    ...nginxProgram,
    trust: 'loopback',
    configuration(ports) {
      const replaced = blockOf('nginx', ports, 1).trim();
      return nginx(blockOf('nginx', ports).replaceAll('proxy_set_header Host $http_host;', replaced));
    },
  },
  {
    name: 'Caddy',
    program: 'caddy',
    trust: false,
    configuration: (ports) => `{\n  admin off\n}\n${blockOf('caddyfile', ports)}`,
    args: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
  },
  {
    name: 'HAProxy',
    program: 'haproxy',
    trust: false,
    configuration: (ports) => blockOf('haproxy', ports),
    args: (file) => ['-db', '-f', file],
  },
];

afterAll(() => rmSync(folder, { recursive: true, force: true }));

// npm test says which proxies are missing.
const available = proxies.filter(({ program }) => isAvailable(program));
const eachProxy = available.length > 0 ? describe.each(available) : describe.skip.each(proxies);

eachProxy('the configuration for $name in docs/deployment.md', (proxy) => {
  let app: ReturnType<ReturnType<typeof express>['listen']>;
  let subscriptions: ReturnType<typeof attachSubscriptions>;
  let stop: () => Promise<void>;
  /** The origin in the address bar of a browser: a name and a port other than 80. */
  let site: string;
  let port: number;

  beforeAll(async () => {
    const graphql = graphqlHTTP(schema);
    app = express().set('trust proxy', proxy.trust).use('/graphql', graphql).listen(0, '127.0.0.1');
    await once(app, 'listening');
    subscriptions = attachSubscriptions(app, graphql);
    port = await freePort();
    site = `http://wall.test:${port}`;
    const file = join(folder, `${proxy.program}.conf`);
    const upstream = (app.address() as AddressInfo).port;
    mkdirSync(join(folder, 'logs'), { recursive: true });
    writeFileSync(file, proxy.configuration({ listen: port, upstream }));
    const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
    stop = await startProgram(proxy.program, proxy.args(file), { port, env });
  });

  afterAll(async () => {
    await stop();
    await subscriptions.close({ drain: 0 });
    app.closeAllConnections();
    await new Promise((done) => app.close(done));
  });

  /** Sends a request as a page of the site, or of another one, would. */
  const send = async (
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: Buffer,
  ): Promise<{ status: number; body: string }> => {
    const sent = request({
      port,
      host: '127.0.0.1',
      method,
      path,
      headers: { host: `wall.test:${port}`, cookie: 'session=1', accept: 'application/json', ...headers },
    });
    sent.end(body);
    const [response] = await once(sent, 'response');
    return { status: response.statusCode, body: await text(response) };
  };

  it('a page of the site can open a WebSocket on a port other than 80', async () => {
    class Browser extends WebSocket {
      constructor(url: string, protocols?: string | string[]) {
        super(url, protocols, { origin: site, headers: { host: `wall.test:${port}` } });
      }
    }
    const client = createClient({
      url: `ws://127.0.0.1:${port}/graphql`,
      webSocketImpl: Browser,
      retryAttempts: 0,
    });
    const results = [];
    for await (const result of client.iterate({ query: '{ hello }' })) results.push(result);
    await client.dispose();
    expect(results).toEqual([{ data: { hello: 'world' } }]);
  });

  it('attachSubscriptions refuses a WebSocket that a page of another site opens', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws', {
      origin: `http://other.test:${port}`,
      headers: { host: `wall.test:${port}` },
    });
    const [error] = await once(socket, 'error').catch((reason) => [reason]);
    expect(String(error)).toContain('403');
  });

  it('graphqlHTTP runs a mutation over GET for the site and refuses it for another site', async () => {
    const path = '/graphql?query=mutation{greet}';
    expect(await send('GET', path, { origin: site })).toEqual({
      status: 200,
      body: '{"data":{"greet":"hello"}}',
    });
    expect((await send('GET', path, { origin: 'http://other.test' })).status).toBe(403);
  });

  it('an upload of 3 MB arrives', async () => {
    const size = 3 * 1024 * 1024;
    const form = new FormData();
    const query = 'mutation ($file: Upload!) { measure(file: $file) }';
    form.set('operations', JSON.stringify({ query, variables: { file: null } }));
    form.set('map', '{"0":["variables.file"]}');
    form.set('0', new Blob([Buffer.alloc(size)]), 'zeros.bin');
    const encoded = new Response(form);
    const type = encoded.headers.get('content-type') as string;
    const body = Buffer.from(await encoded.arrayBuffer());
    const response = await send('POST', '/graphql', { origin: site, 'content-type': type }, body);
    expect(response).toEqual({ status: 200, body: `{"data":{"measure":${size}}}` });
  });
});

it('docs/deployment.md has no configuration that these tests do not run', () => {
  const languages = [...readFileSync(join(root, PAGE), 'utf8').matchAll(/^```(\w+)$/gm)].map(
    ([, language]) => language,
  );
  expect(languages).toEqual(['nginx', 'nginx', 'caddyfile', 'haproxy', 'ts', 'ts']);
});
