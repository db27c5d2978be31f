import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GraphQLCore } from '../core/core.ts';
import { toGraphQLError } from '../execution/graphql-error.ts';
import type { GraphQLParams, PreparedOperation } from '../execution/types.ts';
import { HttpError } from '../http/reply/http-error.ts';
import { attachedEndpoint, LIVE_DEFAULTS, LiveEndpoint } from '../subscriptions/endpoint.ts';
import { createFlushScheduler } from '../subscriptions/flush-scheduler.ts';
import { createIntervalTimer, type IntervalTimer } from '../subscriptions/interval-timer.ts';
import { runWithContext } from '../subscriptions/start.ts';
import { EventStream } from './event-stream.ts';
import type { EventStreamSettings } from './options.ts';
import type { StreamFormat } from './stream-formats.ts';
import { type StreamOperation, streamOperationRequest } from './stream-operation.ts';
import { createJoin } from './stream-queue.ts';

/** Milliseconds between two checks of deadlines. */
const PERIOD = 1000;

/** The event streams of one handler. */
export class EventStreams {
  readonly settings: EventStreamSettings;
  readonly #core: GraphQLCore;
  /** Whether the option `eventStreams` is set, rather than on by default. */
  readonly #isExplicit: boolean;
  readonly #streams = new Set<EventStream>();
  readonly #timer: IntervalTimer;
  readonly #join = createJoin();
  #handlerEndpoint: LiveEndpoint | undefined;

  constructor(core: GraphQLCore, settings: EventStreamSettings, { isExplicit }: { isExplicit: boolean }) {
    this.#core = core;
    this.settings = settings;
    this.#isExplicit = isExplicit;
    const period = Math.max(5, Math.min(PERIOD, settings.ping / 4));
    this.#timer = createIntervalTimer(period, (now) => this.#ping(now));
  }

  /**
   * Creates a stream, which is not open yet.
   *
   * @throws HttpError 400 if streams would avoid the checks of `onConnect`, 503 at the maximum number of
   * connections.
   */
  create(
    request: IncomingMessage,
    format: StreamFormat,
    onClosed: () => void = () => undefined,
  ): EventStream {
    const services = {
      endpoint: this.#endpoint(),
      join: this.#join,
      onClosed: (closed: EventStream) => {
        this.#streams.delete(closed);
        onClosed();
      },
    };
    return new EventStream(services, { request, format });
  }

  /** Begins the response of a stream. */
  open(stream: EventStream, request: IncomingMessage, res: ServerResponse): void {
    const { ping } = this.settings;
    this.#streams.add(stream);
    stream.open(request, res);
    if (ping === 0) return;
    // Spread at random: all clients reconnect together after a restart and would always be pinged together.
    stream.pingAt = this.#timer.now() + ping * (0.5 + Math.random() / 2);
    this.#timer.start();
  }

  /** Opens a stream for one operation. */
  openFor(
    { req, res }: { readonly req: IncomingMessage; readonly res: ServerResponse },
    format: StreamFormat,
    params: GraphQLParams,
  ): StreamOperation {
    const stream = this.create(req, format);
    const operation = stream.addOperation(streamOperationRequest(req, params, undefined));
    this.open(stream, req, res);
    return operation;
  }

  /** Runs a prepared operation. Its results, and its errors, are sent in the stream. */
  run(operation: StreamOperation, prepared: PreparedOperation, context: unknown): void {
    try {
      runWithContext(operation, operation.stream.services, prepared, context);
    } catch (error) {
      operation.fail([toGraphQLError(error)]);
    }
  }

  #endpoint(): LiveEndpoint {
    const attached = attachedEndpoint(this.#core);
    if (attached?.hasOnConnect === true && !this.#isExplicit) {
      const message =
        'Subscriptions over HTTP are off because attachSubscriptions has the option "onConnect", which they do not ' +
        'call; use a WebSocket, or set the option "eventStreams" of graphqlHTTP';
      throw new HttpError(400, message, { code: 'SUBSCRIPTION_OVER_HTTP' });
    }
    const endpoint = attached?.endpoint ?? this.#endpointOfHandler();
    if (
      endpoint.isClosed ||
      endpoint.connectionCount >= (attached?.maxConnections ?? LIVE_DEFAULTS.maxConnections)
    ) {
      throw new HttpError(503, 'Too many connections, or the server is about to stop', {
        headers: { 'retry-after': '5' },
        code: 'TOO_MANY_CONNECTIONS',
      });
    }
    return endpoint;
  }

  /** The endpoint of a handler without `attachSubscriptions`. */
  #endpointOfHandler(): LiveEndpoint {
    this.#handlerEndpoint ??= new LiveEndpoint(this.#core, LIVE_DEFAULTS, createFlushScheduler(), PERIOD);
    return this.#handlerEndpoint;
  }

  #ping(now: number): boolean {
    const { ping } = this.settings;
    for (const stream of this.#streams) {
      if (now < stream.pingAt) continue;
      stream.pingAt = now + ping;
      stream.keepAlive();
    }
    return this.#streams.size > 0;
  }
}
