import type { IncomingMessage } from 'node:http';
import type { MaybePromise } from '../../types/connect.ts';
import type { GraphQLCore } from '../core/core.ts';
import { toRequestError } from '../core/errors.ts';
import { type GraphQLParams, isThenable, type RequestError } from '../execution/types.ts';
import { CLIENT_ABORTED } from '../http/body.ts';
import { HttpError, isAborted, writeReply } from '../http/reply.ts';
import { type EventStreams, streamOperationRequest } from '../live/event-stream.ts';
import { SERVER_SENT_EVENTS, streamTypesOf } from '../live/stream-formats.ts';
import { type Reservation, Reservations } from '../streams/reservations.ts';
import { type Exchange, STREAMED } from './exchange.ts';

const TOKEN_HEADER = 'x-graphql-event-stream-token';

/** An operation of a reserved stream. */
interface ReservedOperation<T> {
  readonly params: GraphQLParams;
  /** Prepares the operation and begins its execution. */
  run(): MaybePromise<T>;
}

/**
 * Single connection mode of GraphQL over server-sent events: a client reserves one stream with PUT, listens
 * to it with GET, starts operations with POST or GET, and stops them with DELETE.
 */
export class SingleConnection {
  readonly #core: GraphQLCore;
  readonly #streams: EventStreams;
  readonly #reservations: Reservations;

  constructor(core: GraphQLCore, streams: EventStreams) {
    this.#core = core;
    this.#streams = streams;
    this.#reservations = new Reservations(streams.settings);
  }

  /** Whether a PUT or DELETE is about a reservation. */
  isReservation(req: IncomingMessage): boolean {
    if (req.method === 'PUT') return isEmpty(req);
    return req.method === 'DELETE' && tokenOf(req) !== undefined;
  }

  /**
   * Handles a request that reserves or opens a stream, or stops an operation. Returns undefined for any other
   * request; if that one starts an operation of a stream, the exchange has its reservation.
   *
   * @throws HttpError 400, 404, 409, 429, 503.
   */
  handle(exchange: Exchange): MaybePromise<typeof STREAMED | RequestError> | undefined {
    const { req } = exchange;
    if (req.method === 'PUT') return this.#reserve(exchange);
    const token = tokenOf(req);
    if (token === undefined) return undefined;
    const reservation = this.#reservations.find(req, token);
    if (req.method === 'DELETE') return this.#stop(exchange, reservation);
    if (req.method === 'GET' && acceptsEvents(exchange)) return this.#listen(exchange, reservation);
    exchange.reservation = reservation;
    return undefined;
  }

  /**
   * Starts an operation of a stream: `run` prepares it and begins its execution.
   *
   * @throws HttpError 400, 409, 413, 429.
   */
  async start<T>(
    exchange: Exchange,
    { stream }: Reservation,
    { params, run }: ReservedOperation<T>,
  ): Promise<T> {
    const id = params.extensions?.['operationId'];
    const { maxIdLength } = stream.endpoint.settings;
    if (typeof id !== 'string' || id === '' || id.length > maxIdLength) {
      const message = `The parameter "extensions" must contain an "operationId" of 1 to ${maxIdLength} characters`;
      throw new HttpError(400, message, { code: 'BAD_REQUEST' });
    }
    const operation = stream.addOperation(streamOperationRequest(exchange.req, params, id));
    exchange.operation = operation;
    try {
      const result = await run();
      if (result === STREAMED) respond(exchange, 202, '');
      else operation.cancel();
      return result;
    } catch (error) {
      operation.cancel();
      throw error;
    }
  }

  #reserve(exchange: Exchange): typeof STREAMED {
    const { req } = exchange;
    // Called before the stream is created: if the option `user` throws, no stream may count as a connection.
    const client = this.#reservations.admit(req);
    let reservation: Reservation | undefined;
    const stream = this.#streams.create(req, SERVER_SENT_EVENTS, () => {
      if (reservation !== undefined) this.#reservations.delete(reservation);
    });
    reservation = this.#reservations.add(client, stream);
    respond(exchange, 201, reservation.token);
    return STREAMED;
  }

  #stop(exchange: Exchange, { stream }: Reservation): typeof STREAMED {
    const id = searchOf(exchange.req).get('operationId');
    if (id === null || id === '') {
      throw new HttpError(400, 'The parameter "operationId" is missing', { code: 'BAD_REQUEST' });
    }
    stream.cancelOperation(id);
    respond(exchange, 200, '');
    return STREAMED;
  }

  /**
   * Opens the stream. The context is created as for a WebSocket, so that `disconnect` finds the stream by it.
   */
  #listen(exchange: Exchange, reservation: Reservation): MaybePromise<typeof STREAMED | RequestError> {
    assertNotOpen(reservation);
    try {
      const context = this.#core.contextFor(exchange.req);
      if (!isThenable(context)) return this.#open(exchange, reservation, context);
      return context.then((value) => this.#open(exchange, reservation, value), toRequestError);
    } catch (error) {
      return toRequestError(error);
    }
  }

  #open({ req, res }: Exchange, reservation: Reservation, context: unknown): typeof STREAMED {
    // A closed response reports no end, so the stream would stay open. The client may use its token again.
    if (isAborted(res)) throw CLIENT_ABORTED;
    assertNotOpen(reservation);
    const { stream } = reservation;
    if (stream.isClosing)
      throw new HttpError(404, 'The reservation has expired', { code: 'STREAM_NOT_FOUND' });
    stream.accept(context);
    this.#reservations.onOpened(reservation);
    this.#streams.open(stream, req, res);
    return STREAMED;
  }
}

function assertNotOpen({ stream }: Reservation): void {
  if (!stream.isOpen) return;
  throw new HttpError(409, 'The event stream is already open', { code: 'STREAM_OPEN' });
}

const searchOf = ({ url = '' }: IncomingMessage): URLSearchParams => {
  const start = url.indexOf('?');
  return new URLSearchParams(start === -1 ? '' : url.slice(start));
};

/** Returns the token in the header, or in the URL for EventSource, which cannot send headers. */
function tokenOf(req: IncomingMessage): string | undefined {
  const header = req.headers[TOKEN_HEADER];
  if (typeof header === 'string') return header;
  return req.url?.includes('token=') === true ? (searchOf(req).get('token') ?? undefined) : undefined;
}

const acceptsEvents = ({ req }: Exchange): boolean =>
  streamTypesOf(req.headers.accept ?? '').some(({ format }) => format === 'event-stream');

function respond({ req, res }: Exchange, status: number, body: string): void {
  const headers = {
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  };
  writeReply(req, res, { status, headers, body });
}

/**
 * Whether a request announces no body: a PUT with a body reserves nothing. HTTP/2 needs no length (RFC 9113
 * §8.1.1).
 */
function isEmpty({ headers }: IncomingMessage): boolean {
  if (headers['content-type'] !== undefined || headers['transfer-encoding'] !== undefined) return false;
  return Number(headers['content-length'] ?? 0) === 0;
}
