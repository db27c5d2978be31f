/** @tags node graphql */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { attachSubscriptions, createServer, graphqlHTTP } from 'espalier';
import express from 'express';
import { buildSchema } from 'graphql';
import WebSocket from 'ws';

// A page of a development server has another origin, and its browser shows neither status nor text of a refused WebSocket,
// preflight or upload. The console of the server says once what to do.

const PAGE = 'http://localhost:5173';
const lines: string[] = [];

beforeEach(() => {
  lines.length = 0;
  jest.spyOn(console, 'warn').mockImplementation((line) => void lines.push(line));
});
afterEach(() => jest.restoreAllMocks());

type Refuse = (url: string) => Promise<unknown>;

const openSocket: Refuse = async (url) => {
  const socket = new WebSocket(url.replace('http', 'ws'), 'graphql-transport-ws', { origin: PAGE });
  await once(socket, 'error');
};
const sendPreflight: Refuse = (url) =>
  fetch(url, {
    method: 'OPTIONS',
    headers: { origin: PAGE, 'access-control-request-method': 'POST' },
  });
const sendUpload: Refuse = (url) =>
  fetch(url, { method: 'POST', headers: { origin: PAGE }, body: new FormData() });

async function refuse(requests: readonly Refuse[], environment = 'test'): Promise<void> {
  process.env['NODE_ENV'] = environment;
  const handler = graphqlHTTP(buildSchema('type Query { hello: String }'));
  const server = createServer(express().use('/graphql', handler)).listen(0);
  const subscriptions = attachSubscriptions(server, handler);
  await once(server, 'listening');
  for (const each of requests)
    await each(`http://localhost:${(server.address() as AddressInfo).port}/graphql`);
  await subscriptions.close();
  await server.drain();
  process.env['NODE_ENV'] = 'test';
}

it('a production server does not log that pages of other origins were refused', async () => {
  await refuse([openSocket, sendPreflight, sendUpload], 'production');
  expect(lines.filter((line) => line.includes(PAGE))).toEqual([]);
});

it.each([
  [
    'a WebSocket',
    openSocket,
    [/"http:\/\/localhost:5173" .* "localhost:\d+"/, /"allowedOrigins"/, /changeOrigin: false/],
  ],
  ['a preflight', sendPreflight, [/"http:\/\/localhost:5173"/, /package cors/, /proxy of Vite/]],
  ['an upload', sendUpload, [/http:\/\/localhost:5173/, /option "allowedOrigins"/]],
] as const)(
  'a development server logs once why it has refused %s of a page of another origin',
  async (_what, send, patterns) => {
    await refuse([send, send]);
    expect(lines).toEqual([expect.any(String)]);
    for (const pattern of patterns) expect(lines[0]).toMatch(pattern);
  },
);
