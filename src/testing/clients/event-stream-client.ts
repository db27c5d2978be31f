import type { IncomingMessage } from 'node:http';
import type { OperationResult, SubscribeRequest } from '../../../types/testing.ts';
import { GRAPHQL_PATH, type OperationParams } from '../messages/requests.ts';
import { readBody } from '../messages/response.ts';
import { type Connection, closeConnection, requestHeaders, sendRequest } from '../messages/send.ts';
import { ConnectionClosedError } from './connection-closed.ts';
import { ResultQueue } from './result-queue.ts';
import type { SubscribeMessage, SubscriptionClient } from './subscription-client.ts';

const HEADERS = { accept: 'text/event-stream', 'content-type': 'application/json' };

/** A client of GraphQL over server-sent events ("distinct connections mode" of graphql-sse) with one operation. */
export class EventStreamClient implements SubscriptionClient {
  readonly results: ResultQueue = new ResultQueue(this);
  readonly responded: Promise<void>;
  readonly #connection: Connection;
  #response: IncomingMessage | undefined;
  #onResponse: () => void = () => undefined;
  #onFailure: (error: unknown) => void = () => undefined;
  #isClosing = false;
  /** The text of an event whose end has not arrived. */
  #pending = '';

  constructor(connection: Connection, params: OperationParams, request: SubscribeRequest<unknown, object>) {
    this.#connection = connection;
    const body = Buffer.from(JSON.stringify(params));
    const message = { method: 'POST', path: request.path ?? GRAPHQL_PATH, headers: HEADERS, body };
    this.responded = new Promise((resolve, reject) => {
      this.#onResponse = resolve;
      this.#onFailure = reject;
      sendRequest(connection, message, requestHeaders(HEADERS, request))
        .then((response) => this.#read(response))
        .catch((error: unknown) => this.#fail(error));
    });
  }

  isOrigin({ origin }: SubscribeMessage): boolean {
    return origin.request?.socket === this.#connection.server;
  }

  pause(): void {
    this.#response?.pause();
  }

  resume(): void {
    this.#response?.resume();
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await closeConnection(this.#connection);
  }

  abort(reason: unknown): void {
    this.#fail(reason);
    this.#connection.client.destroy();
  }

  async #read(response: IncomingMessage): Promise<void> {
    this.#response = response;
    if (!response.headers['content-type']?.startsWith('text/event-stream')) {
      const reason = (await readBody(response)).toString();
      throw new ConnectionClosedError({ status: response.statusCode ?? 0, reason });
    }
    response.setEncoding('utf8').on('data', (text: string) => this.#receive(text));
    response.on('error', (error) => this.#fail(error));
    response.on('end', () => this.#complete());
  }

  #receive(text: string): void {
    const events = (this.#pending + text).split('\n\n');
    this.#pending = events.pop() ?? '';
    for (const event of events) {
      const fields = new Map(event.split('\n').map(splitField));
      const data = fields.get('data');
      if (fields.get('event') !== 'next' || data === undefined) continue;
      this.#onResponse();
      this.results.push(JSON.parse(data) as OperationResult<unknown>);
    }
  }

  #complete(): void {
    this.#onResponse();
    void this.close().then(() => this.results.end());
  }

  #fail(error: unknown): void {
    // The connection may fail after the headers and before the first result.
    this.#onFailure(error);
    if (!this.#isClosing) this.results.fail(error);
  }
}

function splitField(line: string): [name: string, value: string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon), line.slice(colon + 1).trimStart()];
}
