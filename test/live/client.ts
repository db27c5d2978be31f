import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import WebSocket, { type ClientOptions } from 'ws';
import { tls, trusted } from '../exchange.ts';
import * as kit from '../kit.ts';

/** A client that sends raw messages and keeps all received messages. */
export interface RawClient {
  readonly websocket: WebSocket;
  readonly received: Record<string, unknown>[];
  send(message: unknown): void;
  /** The next unread message; fails when the socket closes first. */
  next(): Promise<Record<string, unknown>>;
  /** Messages up to and including the first that matches. */
  until(match: (message: Record<string, unknown>) => boolean): Promise<Record<string, unknown>[]>;
  /** The close code and reason. */
  readonly closed: Promise<{ code: number; reason: string }>;
  /** All messages that arrive before the pong of a ping: proves that no other message follows. */
  silence(): Promise<Record<string, unknown>[]>;
  close(): Promise<unknown>;
}

export const MODERN = 'graphql-transport-ws';
export const LEGACY = 'graphql-ws';
/** A `keepAlive` for clients that answer: one whose pong arrives after the next ping is cut, and a busy machine is slow. */
export const PATIENT = 500;

/** Starts a server, and returns the URL of its WebSockets. */
export async function listen(
  handler?: http.RequestListener,
  secure = false,
): Promise<{ server: http.Server; url: string; port: number }> {
  const server = secure ? https.createServer(tls, handler) : http.createServer(handler);
  const { port, socketUrl: url } = await kit.listen(server, '/graphql');
  return { server, port, url };
}

export async function connect(
  url: string,
  protocol: string | string[] = MODERN,
  options: ClientOptions = {},
): Promise<RawClient> {
  const client = wrap(new WebSocket(url, protocol, { ...trusted, ...options }));
  await once(client.websocket, 'open');
  return client;
}

export function wrap(websocket: WebSocket): RawClient {
  const received: Record<string, unknown>[] = [];
  let taken = 0;
  let over = false;
  let notifyWaiter: () => void = () => undefined;
  websocket.on('error', () => undefined);
  websocket.on('message', (data) => {
    received.push(JSON.parse(String(data)));
    notifyWaiter();
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    websocket.on('close', (code, reason) => {
      over = true;
      notifyWaiter();
      resolve({ code, reason: String(reason) });
    });
  });
  const next = async (): Promise<Record<string, unknown>> => {
    while (taken === received.length) {
      if (over) throw new Error('the socket has closed');
      await new Promise<void>((resolve) => {
        notifyWaiter = resolve;
      });
    }
    return received[taken++] as Record<string, unknown>;
  };
  return {
    websocket,
    received,
    closed,
    next,
    send: (message) => websocket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    async until(match) {
      const messages = [await next()];
      while (!match(messages.at(-1) as Record<string, unknown>)) messages.push(await next());
      return messages;
    },
    async silence() {
      websocket.ping();
      await once(websocket, 'pong');
      // Writes of a burst may be a millisecond behind.
      await new Promise((resolve) => setTimeout(resolve, 5));
      websocket.ping();
      await once(websocket, 'pong');
      const rest = received.slice(taken);
      taken = received.length;
      return rest;
    },
    close() {
      websocket.close();
      return closed;
    },
  };
}

/** A client whose connection was accepted. */
export async function ready(
  url: string,
  protocol: string = MODERN,
  payload?: Record<string, unknown>,
): Promise<RawClient> {
  const client = await connect(url, protocol);
  client.send({ type: 'connection_init', payload });
  await client.until(({ type }) => type === 'connection_ack');
  return client;
}

/** Sends an HTTP upgrade request; resolves with the response when the server has ended it. */
export async function handshake(
  port: number,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: http.IncomingHttpHeaders; body: string }> {
  const request = http.request({
    port,
    host: '127.0.0.1',
    path,
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-protocol': MODERN,
      ...headers,
    },
  });
  request.end();
  return new Promise((resolve, reject) => {
    request.on('error', reject);
    request.on('upgrade', (res, socket) => {
      socket.destroy();
      resolve({ status: 101, headers: res.headers, body: '' });
    });
    request.on('response', (res) => {
      let body = '';
      res.setEncoding('utf8');
      res.on('data', (part) => {
        body += part;
      });
      res.on('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, body }));
    });
  });
}
