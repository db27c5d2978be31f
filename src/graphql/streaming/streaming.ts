import type { IncomingMessage } from 'node:http';
import type { GraphQLCore } from '../../core/core.ts';
import type { GraphQLParams, PreparedOperation } from '../../execution/types.ts';
import { HttpError } from '../../http/reply/http-error.ts';
import { EVENT_STREAM, type Framing } from '../../http/stream/framing.ts';
import { StreamWriter } from '../../http/stream/stream-writer.ts';
import { EventStreams } from '../../streams/event-streams.ts';
import type { Reservation } from '../../streams/reservations.ts';
import {
  MULTIPART_SUBSCRIPTION,
  SERVER_SENT_EVENTS,
  type StreamFormat,
} from '../../streams/stream-formats.ts';
import { type StreamType, streamTypesOf } from '../../streams/stream-types.ts';
import type { Exchange } from '../exchange.ts';
import type { HttpSettings } from '../options.ts';
import { type ReservedOperation, SingleConnection } from './single-connection.ts';

/** The streaming responses of one handler. */
export class Streaming {
  /** Undefined if the option switches single connection mode off. */
  readonly single: SingleConnection | undefined;
  readonly #streams: EventStreams | undefined;

  constructor(core: GraphQLCore, { eventStreams, isEventStreamsSet, methods }: HttpSettings) {
    if (eventStreams === undefined) return;
    this.#streams = new EventStreams(core, eventStreams, { isExplicit: isEventStreamsSet });
    if (eventStreams.single && methods.includes('GET')) {
      this.single = new SingleConnection(core, this.#streams);
    }
  }

  /** Whether a request without an acceptable JSON type gets a streaming response, or is about a reservation. */
  accepts({ method, headers }: IncomingMessage): boolean {
    return this.isReservationMethod(method) || this.#framingFor(headers.accept) !== undefined;
  }

  isReservationMethod(method: string | undefined): boolean {
    return this.single !== undefined && (method === 'PUT' || method === 'DELETE');
  }

  /** Starts an operation whose results are sent in a reserved stream; `run` executes it. */
  start<T>(exchange: Exchange, reservation: Reservation, operation: ReservedOperation<T>): Promise<T> {
    if (this.single === undefined) throw new TypeError('A reservation needs single connection mode');
    return this.single.start(exchange, reservation, operation);
  }

  /** @throws HttpError 400 for a subscription whose request accepts no stream of events. */
  assertSubscription(exchange: Exchange): void {
    if (exchange.operation === undefined) this.#formatOf(exchange);
  }

  /** Begins the response of a subscription, or of an operation of a stream that is already open. */
  run(exchange: Exchange, prepared: PreparedOperation, { params, context }: RunInputs): void {
    const streams = this.#streams as EventStreams;
    let { operation } = exchange;
    if (operation === undefined) {
      operation = streams.openFor(exchange, this.#formatOf(exchange), { ...params, extensions: undefined });
      operation.stream.context = context;
    }
    streams.run(operation, prepared, context);
  }

  /** Sends a single result to a client that accepts streams only. */
  sendWhole({ req, res }: Exchange, payload: string): void {
    const framing = this.#framingFor(req.headers.accept);
    if (framing === undefined || res.headersSent || res.destroyed) return;
    const writer = new StreamWriter(res, framing);
    writer.open(200);
    writer.send(payload);
    writer.end();
  }

  #framingFor(accept: string | undefined): Framing | undefined {
    const isEvents = ({ format }: StreamType): boolean => format === 'event-stream';
    const found = this.#streams !== undefined && streamTypesOf(accept ?? '').some(isEvents);
    return found ? EVENT_STREAM : undefined;
  }

  #formatOf({ req, batchCost }: Exchange): StreamFormat {
    const types =
      this.#streams === undefined || req.method === 'HEAD' ? [] : streamTypesOf(req.headers.accept ?? '');
    for (const type of batchCost === undefined ? types : []) {
      if (type.format === 'event-stream') return SERVER_SENT_EVENTS;
      if (type.format === 'multipart' && type.parameters.get('subscriptionspec') === '1.0') {
        return MULTIPART_SUBSCRIPTION;
      }
    }
    throw new HttpError(400, this.#streams === undefined ? OVER_SOCKETS : OVER_STREAMS, {
      code: 'SUBSCRIPTION_OVER_HTTP',
    });
  }
}

interface RunInputs {
  readonly params: GraphQLParams;
  readonly context: unknown;
}

const OVER_SOCKETS = 'Subscriptions are not supported over HTTP; use a WebSocket (attachSubscriptions)';
const OVER_STREAMS =
  'A subscription over HTTP needs a single operation and Accept: text/event-stream or multipart/mixed;subscriptionSpec=1.0; ' +
  'or use a WebSocket (attachSubscriptions)';
