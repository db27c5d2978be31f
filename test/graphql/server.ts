import type { RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { type Listening, listen } from '../kit.ts';

export type Running = Listening;

/** A server with a URL of `/graphql`. */
export const run = (listener: RequestListener): Promise<Running> => listen(listener, '/graphql');

/** A connection that sends text unchanged. */
export interface Wire {
  readonly socket: Socket;
  write(text: string | Buffer): void;
  /** Resolves with the received text once it matches. */
  until(pattern: RegExp): Promise<string>;
  /** Discards the received text. */
  forget(): void;
  /** Resolves with all received text when the server has closed the connection. */
  closed(): Promise<string>;
}

export function wire(port: number): Wire {
  const socket = connect(port, '127.0.0.1');
  let received = '';
  const waiting = new Set<() => void>();
  const checkWaiters = (): void => {
    for (const check of waiting) check();
  };
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    checkWaiters();
  });
  // A reset closes the connection too.
  socket.on('error', () => undefined);
  return {
    socket,
    write: (text) => socket.write(text),
    until: (pattern) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (!pattern.test(received)) return;
          waiting.delete(check);
          resolve(received);
        };
        waiting.add(check);
        check();
      }),
    forget: () => {
      received = '';
    },
    closed: () => new Promise((resolve) => socket.once('close', () => resolve(received))),
  };
}

/** The text of a POST. */
export function post(body: string | Buffer, headers: Record<string, string> = {}): Buffer {
  const bytes = Buffer.from(body);
  const lines = {
    host: 'localhost',
    'content-type': 'application/json',
    'content-length': String(bytes.length),
    ...headers,
  };
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST /graphql HTTP/1.1\r\n${head.join('')}\r\n`), bytes]);
}
