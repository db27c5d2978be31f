// What most tests need: servers, folders and whatever else must be closed. The kit closes it by itself: after the test that
// made it, or after the file if it was made outside of a test, as in `beforeAll`.
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server as HttpServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Server as TlsServer } from 'node:tls';

type Step = () => unknown;

const ofFile: Step[] = [];
const ofTest: Step[] = [];
let steps = ofFile;

// Processes that tests start import the kit too. They end by themselves.
if (typeof beforeEach === 'function') {
  beforeEach(() => {
    steps = ofTest;
  });
  afterEach(async () => {
    steps = ofFile;
    await undo(ofTest);
  });
  afterAll(() => undo(ofFile));
}

/** Runs functions after the test, or after the file outside of a test: the last one first. What they throw fails the test. */
export function atEnd(...more: Step[]): void {
  steps.push(...more);
}

async function undo(given: Step[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of given.splice(0).reverse()) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** A server that listens on a free port of 127.0.0.1. */
export interface Listening<S extends Server = HttpServer> {
  readonly server: S;
  readonly port: number;
  /** `http://127.0.0.1:<port><path>`, or https. */
  readonly url: string;
  /** The same for WebSockets. */
  readonly socketUrl: string;
  /** Closes the server and all of its connections before the end of the test. */
  close(): Promise<void>;
}

/** Makes a server of Node listen, or an Express app, a middleware or another function over HTTP/1.1. */
export async function listen(target: RequestListener | HttpServer, path?: string): Promise<Listening>;
export async function listen<S extends Server>(target: S, path?: string): Promise<Listening<S>>;
export async function listen(target: RequestListener | Server, path = ''): Promise<Listening<Server>> {
  const server: Server = typeof target === 'function' ? createServer(target) : target;
  // Also those of WebSockets and HTTP/2, which closeAllConnections() leaves open.
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const place = `${server instanceof TlsServer ? 's' : ''}://127.0.0.1:${port}${path}`;
  const close = async (): Promise<void> => {
    const closed = server.listening ? once(server, 'close') : undefined;
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  atEnd(close);
  return { server, port, url: `http${place}`, socketUrl: `ws${place}`, close };
}

/** Creates a folder with files by their relative paths. */
export function makeFolder(
  files: Readonly<Record<string, string | Buffer>> = {},
  above: string = tmpdir(),
): string {
  const folder = realpathSync.native(mkdtempSync(join(above, 'espalier-')));
  atEnd(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  for (const [name, content] of Object.entries(files)) put(join(folder, name), content);
  return folder;
}

/** Writes a file, and creates the folders above it. */
export function put(path: string, content: string | Buffer): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/** Sends JSON by POST. */
export const postJson = (
  url: string | URL,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
