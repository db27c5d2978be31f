import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { clientAddress } from '../cost/budget.ts';
import { HttpError } from '../http/reply.ts';
import type { EventStream } from '../live/event-stream.ts';
import type { EventStreamSettings } from '../live/options.ts';
import { createIntervalTimer, type IntervalTimer } from '../live/timers.ts';
import { assertSync } from '../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';

/** Milliseconds until a reservation without a stream expires. */
const TTL = 10_000;
/** Reservations of all addresses that wait for their stream. */
const MAX_WAITING = 10_000;

/** The client that a reservation belongs to. */
interface ReservingClient {
  /** The return value of the option `user`. */
  readonly user: unknown;
  readonly address: string;
}

/** A stream that a client has reserved, or uses, for several operations. */
export interface Reservation extends ReservingClient {
  readonly token: string;
  readonly stream: EventStream;
  readonly expiresAt: number;
}

/** The reservations of one handler, by token. */
export class Reservations {
  readonly #settings: EventStreamSettings;
  readonly #byToken = new Map<string, Reservation>();
  /** Reservations that wait for their stream, per client address. */
  readonly #waiting = new Map<string, Set<Reservation>>();
  readonly #timer: IntervalTimer = createIntervalTimer(1000, (now) => this.#expire(now));
  #waitingCount = 0;

  constructor(settings: EventStreamSettings) {
    this.#settings = settings;
  }

  /**
   * Returns the client of a reservation.
   *
   * @throws HttpError 429 if the client, or all clients, have too many reservations that wait for their
   * stream.
   */
  admit(req: IncomingMessage): ReservingClient {
    const address = clientAddress(req);
    const ofAddress = this.#waiting.get(address)?.size ?? 0;
    if (ofAddress < this.#settings.maxReservations && this.#waitingCount < MAX_WAITING) {
      return { user: this.#userOf(req), address };
    }
    const message = 'Too many reservations of event streams wait for their stream';
    throw new HttpError(429, message, { headers: { 'retry-after': '10' }, code: 'TOO_MANY_RESERVATIONS' });
  }

  /** Creates a reservation with a random token. */
  add(client: ReservingClient, stream: EventStream): Reservation {
    const expiresAt = this.#timer.now() + TTL;
    const reservation: Reservation = { ...client, token: randomUUID(), stream, expiresAt };
    const { token, address } = reservation;
    this.#byToken.set(token, reservation);
    const waiting = this.#waiting.get(address);
    if (waiting === undefined) this.#waiting.set(address, new Set([reservation]));
    else waiting.add(reservation);
    this.#waitingCount++;
    this.#timer.start();
    return reservation;
  }

  /** @throws HttpError 404 for an unknown or expired token, or the token of another user. */
  find(req: IncomingMessage, token: string): Reservation {
    const reservation = this.#byToken.get(token);
    if (reservation !== undefined && Object.is(reservation.user, this.#userOf(req))) return reservation;
    const message = 'The reservation of the event stream is unknown or has expired; send a new PUT';
    throw new HttpError(404, message, { code: 'STREAM_NOT_FOUND' });
  }

  /** Called when the stream of a reservation has begun. */
  onOpened(reservation: Reservation): void {
    const waiting = this.#waiting.get(reservation.address);
    if (waiting?.delete(reservation) !== true) return;
    this.#waitingCount--;
    if (waiting.size === 0) this.#waiting.delete(reservation.address);
  }

  /** Called when the stream of a reservation has ended. */
  delete(reservation: Reservation): void {
    this.onOpened(reservation);
    this.#byToken.delete(reservation.token);
  }

  #userOf(req: IncomingMessage): unknown {
    return assertSync(this.#settings.user?.(req), GRAPHQL_OPTIONS, 'eventStreams.user');
  }

  #expire(now: number): boolean {
    for (const reservations of [...this.#waiting.values()]) {
      for (const { expiresAt, stream } of reservations) if (now >= expiresAt) stream.closeSocket();
    }
    return this.#waitingCount > 0;
  }
}
