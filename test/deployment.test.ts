import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import express from 'express';
import { GraphQLInt, GraphQLNonNull, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { attachSubscriptions, graphqlHTTP, Upload, type UploadedFile } from '../middleware/index.ts';

const page = readFileSync(resolve(__dirname, '../docs/deployment.md'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'espalier-nginx-'));

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

let app: ReturnType<ReturnType<typeof express>['listen']>;
let subscriptions: ReturnType<typeof attachSubscriptions>;
let nginx: ChildProcess;
/** The origin in the address bar of a browser: a name and a port other than 80. */
let site: string;
let port: number;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

/** The nginx block of the page, with the ports of this test. */
function configuration(listen: number, upstream: number): string {
  const block = /^```nginx\n([\s\S]*?)^```/m.exec(page)?.[1] as string;
  const http = block.replace('listen 80;', `listen 127.0.0.1:${listen};`).replaceAll(':3000', `:${upstream}`);
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  return `daemon off; pid ${join(folder, 'pid')}; error_log stderr; events {}
    http { access_log off; ${paths.join(' ')}\n${http} }`;
}

beforeAll(async () => {
  const graphql = graphqlHTTP(schema);
  app = express().use('/graphql', graphql).listen(0, '127.0.0.1');
  await once(app, 'listening');
  subscriptions = attachSubscriptions(app, graphql);
  port = await freePort();
  site = `http://wall.test:${port}`;
  mkdirSync(join(folder, 'logs'));
  writeFileSync(join(folder, 'nginx.conf'), configuration(port, (app.address() as AddressInfo).port));
  nginx = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], {
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
  });
  let output = '';
  nginx.stderr?.on('data', (chunk) => (output += chunk));
  nginx.once('error', () => (output += 'nginx was not found; this test needs it (Debian: nginx-light)'));
  while (!(await accepts(port))) {
    if (nginx.pid === undefined || nginx.exitCode !== null) throw new Error(`nginx did not start: ${output}`);
  }
});

afterAll(async () => {
  const closed = once(nginx, 'close');
  nginx.kill('SIGQUIT');
  await closed;
  await subscriptions.close({ drain: 0 });
  await new Promise((done) => app.close(done));
  rmSync(folder, { recursive: true, force: true });
});

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Sends a request as a page of the site, or of another one, would. */
async function send(
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: Buffer,
): Promise<{ status: number; body: string }> {
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
}

describe('the nginx configuration of docs/deployment.md', () => {
  it('nginx lets a page of the site open a WebSocket on a port other than 80', async () => {
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

  it('attachSubscriptions behind nginx refuses a WebSocket that a page of another site opens', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws', {
      origin: `http://other.test:${port}`,
      headers: { host: `wall.test:${port}` },
    });
    const [error] = await once(socket, 'error').catch((reason) => [reason]);
    expect(String(error)).toContain('403');
  });

  it('graphqlHTTP behind nginx runs a mutation over GET for the site and refuses it for another site', async () => {
    const path = '/graphql?query=mutation{greet}';
    expect(await send('GET', path, { origin: site })).toEqual({
      status: 200,
      body: '{"data":{"greet":"hello"}}',
    });
    expect((await send('GET', path, { origin: 'http://other.test' })).status).toBe(403);
  });

  it('nginx passes on an upload that is larger than the default limit of nginx', async () => {
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
