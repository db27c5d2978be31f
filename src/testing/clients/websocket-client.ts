import { randomUUID } from 'node:crypto';
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { OperationResult, SubscribeRequest } from '../../../types/testing.ts';
import type { Target } from '../connection/target.ts';
import { GRAPHQL_PATH, type OperationParams } from '../messages/requests.ts';
import { readBody } from '../messages/response.ts';
import { type Connection, closeConnection, requestHeaders } from '../messages/send.ts';
import { ConnectionClosedError } from './connection-closed.ts';
import { ResultQueue } from './result-queue.ts';
import type { SubscribeMessage, SubscriptionClient } from './subscription-client.ts';

const SUBPROTOCOL = 'graphql-transport-ws';
/** The default of `attachSubscriptions`. */
const MAX_PAYLOAD = 1024 * 1024;

/** The servers of handlers that accept WebSockets already. */
const accepting = new WeakSet<object>();

/** Lets the server of a handler accept WebSockets, as a server with `attachSubscriptions` does. */
export async function serveWebSockets({ server, websocketHandler }: Target): Promise<void> {
  if (websocketHandler === undefined || accepting.has(server)) return;
  const { WebSocketServer } = await import('ws');
  if (accepting.has(server)) return;
  accepting.add(server);
  const websocketServer = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MAX_PAYLOAD,
  });
  (server as Server).on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    websocketServer.handleUpgrade(req, socket, head, (websocket) => websocketHandler(websocket, req));
  });
}

/** A client of the subprotocol `graphql-transport-ws` with one operation. */
export class WebSocketClient implements SubscriptionClient {
  /** The id of the operation, which is unique in the process. */
  readonly id: string = randomUUID();
  readonly results: ResultQueue = new ResultQueue(this);
  readonly responded: Promise<void>;
  readonly #websocket: WebSocket;
  readonly #connection: Connection;
  readonly #params: OperationParams;
  #onResponse: () => void = () => undefined;
  #onFailure: (error: unknown) => void = () => undefined;
  #isActive = false;
  #isClosing = false;

  constructor(
    Implementation: typeof WebSocket,
    connection: Connection,
    params: OperationParams,
    request: SubscribeRequest<unknown, object>,
  ) {
    this.#connection = connection;
    this.#params = params;
    this.responded = new Promise((resolve, reject) => {
      this.#onResponse = resolve;
      this.#onFailure = reject;
    });
    const { path = GRAPHQL_PATH, connectionParams } = request;
    const websocket = new Implementation(`ws://localhost${path}`, [SUBPROTOCOL], {
      createConnection: () => connection.client,
      headers: Object.fromEntries(
        Object.entries(requestHeaders({}, request)).map(([name, value]) => [name, `${value}`]),
      ),
      perMessageDeflate: false,
    });
    this.#websocket = websocket;
    websocket.on('open', () => this.#send({ type: 'connection_init', payload: connectionParams }));
    websocket.on('message', (data) => this.#receive(JSON.parse(String(data))));
    websocket.on('close', (code, reason) => {
      this.#fail(new ConnectionClosedError({ code, reason: reason.toString() }));
    });
    websocket.on('unexpected-response', (_request, response) => {
      this.#refuse(response).catch((error: unknown) => this.#fail(error));
    });
    websocket.on('error', (error) => this.#fail(connection.server.handlerError?.error ?? error));
  }

  isOrigin({ id }: SubscribeMessage): boolean {
    return id === this.id;
  }

  pause(): void {
    this.#websocket.pause();
  }

  resume(): void {
    this.#websocket.resume();
  }

  async close(): Promise<void> {
    if (this.#isActive) this.#send({ id: this.id, type: 'complete' });
    this.#isActive = false;
    this.#isClosing = true;
    // Before the handshake there is no socket to send a close frame to.
    if (this.#websocket.readyState === this.#websocket.OPEN) this.#websocket.close(1000);
    await closeConnection(this.#connection);
  }

  /** Disconnects without a close frame. */
  abort(reason: unknown): void {
    this.#fail(reason);
    this.#connection.client.destroy();
  }

  #send(message: object): void {
    if (this.#websocket.readyState === this.#websocket.OPEN) this.#websocket.send(JSON.stringify(message));
  }

  #receive({ type, payload }: { type: string; payload?: unknown }): void {
    if (type === 'connection_ack') {
      this.results.acknowledgement = payload;
      this.#isActive = true;
      this.#send({ id: this.id, type: 'subscribe', payload: this.#params });
    } else if (type === 'next') {
      this.#onResponse();
      this.results.push(payload as OperationResult<unknown>);
    } else if (type === 'error') {
      this.#onResponse();
      this.results.push({ errors: payload } as OperationResult<unknown>);
      this.#complete();
    } else if (type === 'complete') {
      this.#onResponse();
      this.#complete();
    }
  }

  #complete(): void {
    this.#isActive = false;
    void this.close().then(() => this.results.end());
  }

  async #refuse(response: IncomingMessage): Promise<void> {
    const reason = (await readBody(response)).toString().trim();
    this.#fail(new ConnectionClosedError({ status: response.statusCode ?? 0, reason }));
  }

  #fail(error: unknown): void {
    if (this.#isClosing) return;
    this.#isActive = false;
    this.#onFailure(error);
    this.results.fail(error);
  }
}
