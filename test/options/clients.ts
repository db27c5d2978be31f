import type { IncomingHttpHeaders, RequestListener } from 'node:http';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { SubscriptionTarget } from '../../types/graphql.ts';
import type { SubscriptionOptions } from '../../types/subscriptions.ts';
import { connect, handshake, listen, MODERN, ready } from '../live/client.ts';

/** Gives a value another type, as code without type checks does. */
export const untyped = <T>(value: unknown): T => value as T;

/** Runs a function and adds what it logs to its result. */
export async function withLog(run: () => Promise<string>): Promise<string> {
  const lines: unknown[] = [];
  const spies = (['error', 'warn'] as const).map((name) =>
    jest.spyOn(console, name).mockImplementation((...all: unknown[]) => void lines.push(...all)),
  );
  try {
    return [await run(), ...lines.map(String)].join('\n');
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: IncomingHttpHeaders & Record<string, string>;
  readonly body?: string | Uint8Array<ArrayBuffer> | FormData;
}

/** Sends a request to a listener: status and body of the response. */
export async function send(app: RequestListener, { path = '/graphql', ...init }: Sent): Promise<string> {
  const { server, port } = await listen(app);
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
    return `${response.status} ${textOf(await response.text())}`;
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

/** The text of a response. Of the page that Express sends for an error, that is the message without its stack. */
const textOf = (body: string): string =>
  (/<pre>(.*?)<(?:br|\/pre)>/s.exec(body)?.[1] ?? body)
    .trim()
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replace(/127\.0\.0\.1:\d{4,}/, '<host>');

/** Sends a GraphQL request as JSON. */
export const post = (app: RequestListener, body: unknown): Promise<string> =>
  send(app, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

/** Sends a multipart request with these parts; a file is given as a Blob. */
export function form(app: RequestListener, parts: Readonly<Record<string, string | Blob>>): Promise<string> {
  const body = new FormData();
  for (const [name, part] of Object.entries(parts)) {
    if (typeof part === 'string') body.append(name, part);
    else body.append(name, part, 'big.txt');
  }
  return send(app, { method: 'POST', body });
}

/** Attaches subscriptions to a new server while a function uses it. */
async function attached<T>(
  target: SubscriptionTarget,
  options: SubscriptionOptions,
  use: (port: number) => Promise<T>,
): Promise<T> {
  const { server, port } = await listen();
  const subscriptions = attachSubscriptions(server, target, options);
  try {
    return await use(port);
  } finally {
    await subscriptions.close();
    server.close();
  }
}

const urlOf = (port: number): string => `ws://127.0.0.1:${port}/graphql`;

/** Opens a socket, sends messages, and returns the received messages and the close code and reason. */
export function closing(
  target: SubscriptionTarget,
  options: SubscriptionOptions,
  messages: readonly unknown[],
  protocols: string[] = [MODERN],
): Promise<string> {
  return attached(target, options, async (port) => {
    const client = await connect(urlOf(port), protocols);
    for (const message of messages) client.send(message);
    const { code, reason } = await client.closed;
    return `${JSON.stringify(client.received)} ${code} ${reason}`;
  });
}

/** Starts an operation over an accepted socket and returns the messages until it ends. */
export function operate(
  target: SubscriptionTarget,
  options: SubscriptionOptions,
  payload: object,
): Promise<string> {
  return attached(target, options, async (port) => {
    const client = await ready(urlOf(port));
    client.send({ id: '1', type: 'subscribe', payload });
    await client.until(({ type }) => type === 'error' || type === 'complete');
    return JSON.stringify(client.received);
  });
}

/** Sends an upgrade request and returns status and body of the response. */
export function upgrade(
  target: SubscriptionTarget,
  options: SubscriptionOptions,
  [path, headers]: [path: string, headers: Record<string, string>],
): Promise<string> {
  return attached(target, options, async (port) => {
    const { status, body } = await handshake(port, path, headers);
    return `${status} ${body}`;
  });
}
