import type { IncomingMessage } from 'node:http';
import { StreamCompression } from '../compress/streams.ts';
import type { GraphQLCore } from '../core/core.ts';
import { toGraphQLError } from '../execution/graphql-error.ts';
import type {
  ErrorOrigin,
  IncrementalFormat,
  PreparedOperation,
  RemainingResults,
} from '../execution/types.ts';
import type { Exchange } from '../http/exchange.ts';
import { HttpError } from '../http/reply.ts';
import {
  EVENT_STREAM,
  type Framing,
  JSON_LINES,
  multipartMixed,
  StreamWriter,
  streamPayloads,
} from '../http/stream.ts';
import { LIVE_DEFAULTS } from '../live/endpoint.ts';
import { EventStreams } from '../live/event-stream.ts';
import {
  MULTIPART_SUBSCRIPTION,
  SERVER_SENT_EVENTS,
  type StreamFormat,
  type StreamType,
  streamTypesOf,
} from '../live/stream-formats.ts';
import type { HttpCall } from './call.ts';
import type { HttpSettings } from './options.ts';
import { originOf } from './request.ts';

/** The streaming responses of one handler. */
export class Streaming {
  readonly #core: GraphQLCore;
  readonly #streams: EventStreams | undefined;
  readonly #sendsLines: boolean;
  /** Undefined without the option `compress`. */
  readonly #compression: StreamCompression | undefined;

  constructor(core: GraphQLCore, settings: HttpSettings) {
    const { eventStreams, batching, compression } = settings;
    this.#compression = compression && new StreamCompression(compression);
    this.#sendsLines = batching !== false;
    this.#core = core;
    if (eventStreams !== false) this.#streams = new EventStreams(core, eventStreams === true);
  }

  /** Whether a request without an acceptable JSON type gets a streaming response. */
  accepts(req: IncomingMessage): boolean {
    return this.#framingFor(req.headers.accept) !== undefined;
  }

  /**
   * Called before the context of a subscription is created.
   *
   * @throws HttpError 400 if the request accepts no stream of events.
   */
  beginSubscription(exchange: Exchange): void {
    this.#formatOf(exchange);
    this.#streams?.begin(exchange.res);
  }

  /** Begins the response of a subscription. */
  run(call: HttpCall, prepared: PreparedOperation): void {
    const { exchange } = call;
    const createEncoding = () => this.#compression?.encodingFor(exchange);
    const format = this.#formatOf(exchange);
    this.#streams?.run(call, prepared, exchange, { format, createEncoding });
  }

  /** Returns the format of the payloads if the request accepts several; undefined if it gets a single result. */
  incrementalFormatFor(
    { req, batchSize }: Exchange,
    defaultFormat: IncrementalFormat,
  ): IncrementalFormat | undefined {
    if (batchSize !== undefined || req.method === 'HEAD') return undefined;
    return incrementalResponse(req.headers.accept, defaultFormat)?.format;
  }

  /** Sends the payloads of an incremental response. */
  sendIncremental(exchange: Exchange, first: string, rest: RemainingResults): void {
    const { req, res } = exchange;
    const response = incrementalResponse(req.headers.accept, 'v0.2');
    if (response === undefined || res.headersSent) {
      rest.return().catch(() => undefined);
      return;
    }
    void streamPayloads(res, {
      framing: response.framing,
      encoding: this.#compression?.encodingFor(exchange),
      status: 200,
      payloads: allPayloads(first, rest),
      keepAlive: LIVE_DEFAULTS.ping,
      onError: (error) => lastPayload(this.#errorsOf(error, originOf(exchange)), rest.openIds),
    });
  }

  /** Masks and reports the error with which the payloads ended: a failure outside of their parts. */
  #errorsOf(error: unknown, origin: ErrorOrigin): string {
    return JSON.stringify(this.#core.formatErrors([toGraphQLError(error)], origin));
  }

  /** Whether the results of a batch are sent as JSON lines. */
  acceptsLines({ req }: Exchange): boolean {
    return this.#sendsLines && namesLines(req.headers.accept);
  }

  /** Begins the response of a batch with its first line, so that an earlier error has a status of its own. */
  createLines(exchange: Exchange): { send(line: string): void; end(): void } {
    const { res } = exchange;
    const writer = new StreamWriter(res, JSON_LINES, this.#compression?.encodingFor(exchange));
    return {
      send: (line) => {
        if (!res.headersSent) writer.open(200);
        writer.send(line);
      },
      end: () => writer.end(),
    };
  }

  /** Sends a single result to a client that accepts streams only. */
  sendWhole(exchange: Exchange, payload: string): void {
    const { req, res } = exchange;
    const framing = this.#framingFor(req.headers.accept);
    if (framing === undefined || res.headersSent || res.destroyed) return;
    const writer = new StreamWriter(res, framing, this.#compression?.encodingFor(exchange));
    writer.open(200);
    writer.send(payload);
    writer.end();
  }

  /** Returns the framing of a single result for a client that accepts streams only. */
  #framingFor(accept: string | undefined): Framing | undefined {
    const subscription = this.#streams === undefined ? undefined : formatOf(accept);
    if (subscription !== undefined) return subscription.framing;
    if (this.#sendsLines && namesLines(accept)) return JSON_LINES;
    return this.#core.mayBeIncremental ? incrementalResponse(accept, 'v0.2')?.framing : undefined;
  }

  #formatOf({ req, batchSize }: Exchange): StreamFormat {
    const isOff = this.#streams === undefined || req.method === 'HEAD' || batchSize !== undefined;
    const format = isOff ? undefined : formatOf(req.headers.accept);
    if (format !== undefined) return format;
    throw new HttpError(400, this.#streams === undefined ? OVER_SOCKETS : OVER_STREAMS, {
      code: 'SUBSCRIPTION_OVER_HTTP',
    });
  }
}

/** The payload after which no other follows: the parts that the client waits for have failed. */
function lastPayload(errors: string, openIds: ReadonlySet<string> | undefined): string {
  if (openIds === undefined || openIds.size === 0) return `{"errors":${errors},"hasNext":false}`;
  const completed = [...openIds].map((id) => `{"id":${JSON.stringify(id)},"errors":${errors}}`);
  return `{"completed":[${completed.join()}],"hasNext":false}`;
}

const namesLines = (accept = ''): boolean =>
  streamTypesOf(accept).some(({ format }) => format === 'json-lines');

/** Returns the protocol of a subscription that an `Accept` header names; undefined if it names none. */
function formatOf(accept: string | undefined): StreamFormat | undefined {
  for (const { format, parameters } of streamTypesOf(accept ?? '')) {
    if (format === 'event-stream') return SERVER_SENT_EVENTS;
    if (parameters.get('subscriptionspec') === '1.0') return MULTIPART_SUBSCRIPTION;
  }
  return undefined;
}

const OVER_SOCKETS = 'Subscriptions are not supported over HTTP; use a WebSocket (attachSubscriptions)';
const OVER_STREAMS =
  'A subscription over HTTP needs a single operation and Accept: text/event-stream or multipart/mixed;subscriptionSpec=1.0; ' +
  'or use a WebSocket (attachSubscriptions)';

/** The formats of an incremental response. */
interface IncrementalResponse {
  readonly format: IncrementalFormat;
  readonly framing: Framing;
}

const part = (parameters: string): Framing => multipartMixed({ boundary: '-', parameters });
const PLAIN_PARTS = part('');

/** The parameters of `multipart/mixed` that name a format, with their responses. */
const NAMED_FORMATS: Readonly<Record<string, Readonly<Record<string, IncrementalResponse>>>> = {
  incrementalspec: {
    'v0.2': { format: 'v0.2', framing: part('incrementalSpec=v0.2') },
    'v0.1': { format: '20220824', framing: part('incrementalSpec=v0.1') },
  },
  deferspec: { 20220824: { format: '20220824', framing: part('deferSpec=20220824') } },
};

/** Returns the response for the preferred type of an `Accept` header; undefined if it names no incremental one. */
function incrementalResponse(
  accept: string | undefined,
  defaultFormat: IncrementalFormat,
): IncrementalResponse | undefined {
  for (const type of streamTypesOf(accept ?? '')) {
    const response = responseOf(type, defaultFormat);
    if (response !== undefined) return response;
  }
  return undefined;
}

function responseOf(
  { format: media, parameters }: StreamType,
  format: IncrementalFormat,
): IncrementalResponse | undefined {
  if (media === 'event-stream') return { format, framing: EVENT_STREAM };
  if (media === 'json-lines') return { format, framing: JSON_LINES };
  if (parameters.has('subscriptionspec')) return undefined;
  for (const [name, formats] of Object.entries(NAMED_FORMATS)) {
    const version = parameters.get(name);
    if (version !== undefined) return Object.hasOwn(formats, version) ? formats[version] : undefined;
  }
  return { format, framing: PLAIN_PARTS };
}

/** The payloads of an incremental response, from the first one. */
function allPayloads(first: string, rest: RemainingResults): AsyncIterable<string> {
  let isFirst = true;
  return {
    [Symbol.asyncIterator]: () => ({
      next() {
        // The execution of deferred parts begins with the first call of `rest.next`, after the first payload
        // was sent.
        if (!isFirst) return rest.next();
        isFirst = false;
        return Promise.resolve({ done: false, value: first });
      },
      return: () => rest.return(),
    }),
  };
}
