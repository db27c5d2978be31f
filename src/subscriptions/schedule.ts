import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Connection } from './connection.ts';
import { PIECE } from './outlet.ts';

/** How long a closing handshake may take. */
const HANDSHAKE = 5000;
/** How long a reader that was too slow has to read why it is cut off. */
const FAREWELL = 1000;
/** How long a slow reader may take for a piece of what it is sent. */
const PATIENCE = 5000;
const NEVER = Number.POSITIVE_INFINITY;

/** The deadlines of one connection, looked at by the sweep: no timers of its own. */
export class Schedule {
  readonly #connection: Connection;
  readonly #raw: Duplex | undefined;
  #initBy: number;
  #pingAt: number;
  #kaAt = NEVER;
  #expiresAt = NEVER;
  #killAt = NEVER;
  /** Bytes read and pieces taken at the last ping. */
  #signs = -1;
  #waitsSince = NEVER;
  #taken = 0;

  constructor(connection: Connection, raw: Duplex | undefined) {
    this.#connection = connection;
    this.#raw = raw;
    const { sweep, settings } = connection.hub;
    const now = sweep.now();
    const { keepAlive, connectionInitWaitTimeout } = settings;
    this.#initBy = now + connectionInitWaitTimeout;
    // Spread, or all who came back after a restart would be pinged in one turn for ever.
    this.#pingAt = keepAlive === 0 ? NEVER : now + Math.ceil(keepAlive * (0.5 + Math.random() / 2));
  }

  /** `connection_init` has come. */
  initialised(): void {
    this.#initBy = NEVER;
  }

  expires(at: number): void {
    this.#expiresAt = at;
  }

  /** Legacy clients read `ka` from now on; once they have seen one they count on the next. */
  tick(): void {
    this.#connection.write({ type: 'ka' });
    this.#kaAt = this.#connection.hub.sweep.now() + this.#connection.hub.settings.keepAlive;
  }

  closing(isSlow: boolean): void {
    this.#killAt = this.#connection.hub.sweep.now() + (isSlow ? FAREWELL : HANDSHAKE);
  }

  visit(now: number): void {
    const connection = this.#connection;
    if (now >= this.#killAt) connection.websocket.terminate();
    else if (connection.closing) return;
    else if (now >= this.#initBy) {
      connection.dialect.close(connection, 4408, 'Connection initialisation timeout');
    } else if (Date.now() >= this.#expiresAt) connection.shut(4403, 'Forbidden');
    else {
      if (now >= this.#pingAt) this.#ping(now);
      if (now >= this.#kaAt) this.tick();
      this.#watchReader(now);
    }
  }

  /** Whatever came in, or was taken, since the last ping is a sign of life: a large message may hold up ping and pong. */
  #ping(now: number): void {
    const { websocket, hub, outlet } = this.#connection;
    const signs = this.#raw instanceof Socket ? this.#raw.bytesRead + outlet.taken : -1;
    if (signs !== -1 && signs === this.#signs) {
      websocket.terminate();
      return;
    }
    this.#signs = signs;
    this.#pingAt = now + hub.settings.keepAlive;
    websocket.ping();
  }

  /** Somebody waits for the reader to take something: not for ever. */
  #watchReader(now: number): void {
    const { outlet } = this.#connection;
    if (!outlet.waitedFor) {
      this.#waitsSince = NEVER;
      return;
    }
    if (this.#waitsSince === NEVER || outlet.taken !== this.#taken) this.#waitsSince = now;
    this.#taken = outlet.taken;
    const pieces = Math.max(1, outlet.backlog / PIECE);
    if (now - this.#waitsSince >= PATIENCE * pieces) this.#connection.cutOff();
  }
}
