import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocketLike } from '../../types/subscriptions.ts';
import { type Envelope, Frames, wholeMessage } from './frames.ts';
import type { Outbox, Sender } from './outbox.ts';
import { isOpen } from './settings.ts';

/** Handed to the socket at a time: what it holds is out of reach for `drop`, and progress shows in such steps. */
export const PIECE: number = 64 * 1024;

/** Everything that leaves through one WebSocket, in order: in one write per burst, and within a limit for slow readers. */
export class Outlet implements Sender {
  readonly #websocket: WebSocketLike;
  /** The socket below, where we may write frames of our own; undefined where extensions rewrite them. */
  readonly #raw: Duplex | undefined;
  readonly #outbox: Outbox;
  #frames: Frames | undefined;
  #hasty = false;
  #held = false;
  #taken = 0;
  #waiters: (() => void)[] | undefined;

  constructor(websocket: WebSocketLike, raw: Duplex | undefined, outbox: Outbox) {
    this.#websocket = websocket;
    this.#raw = websocket.extensions === '' ? raw : undefined;
    this.#outbox = outbox;
  }

  /** Bytes that the reader has not taken. */
  get backlog(): number {
    const sent = this.#raw === undefined ? this.#websocket.bufferedAmount : this.#raw.writableLength;
    return this.#frames === undefined ? sent : sent + this.#frames.bytes;
  }

  /** Grows whenever a reader that we had to wait for has taken what it was sent. */
  get taken(): number {
    return this.#taken;
  }

  /** True while somebody waits for room. */
  get waitedFor(): boolean {
    return this.#waiters !== undefined;
  }

  /** Queues a message; `soon` where somebody waits for it. */
  push(envelope: Envelope | undefined, body: Buffer, soon: boolean): void {
    if (this.#frames === undefined) {
      this.#frames = new Frames();
      if (!soon) this.#outbox.add(this);
    }
    if (soon && !this.#hasty) {
      this.#hasty = true;
      this.#outbox.hasten(this);
    }
    this.#frames.push(envelope, body);
    this.#outbox.count();
  }

  /** Drops what may be dropped until no more than `limit` bytes wait here. */
  shrink(limit: number): void {
    this.#frames?.shrink(limit);
  }

  /** Drops everything: nothing more will leave, and nobody waits for it. */
  discard(): void {
    this.#frames = undefined;
    this.#wake();
  }

  flush(): void {
    this.#hasty = false;
    while (this.#frames !== undefined && !this.#isHeld()) {
      const frames = this.#frames.bytes > PIECE ? this.#frames.take(PIECE) : this.#frames;
      if (frames === this.#frames || this.#frames.bodies.length === 0) this.#frames = undefined;
      this.#send(frames);
    }
  }

  /** Hands over what may leave; true when nobody reads the bytes of any message any more. */
  drain(): boolean {
    this.flush();
    // The kernel, or TLS, has copied them; another stream might hand them on.
    return this.#raw instanceof Socket && this.backlog === 0;
  }

  /** Hands over everything, whatever the reader does: the socket is about to close. */
  finish(): void {
    if (this.#frames !== undefined) this.#send(this.#frames);
    this.discard();
  }

  /** For who can wait: resolves when the reader has taken something, or never will; undefined when it keeps up. */
  room(): Promise<void> | undefined {
    if (this.#frames !== undefined && this.#frames.bytes > PIECE) this.flush();
    if (!this.#isHeld()) return undefined;
    return new Promise((resolve) => {
      this.#waiters ??= [];
      this.#waiters.push(resolve);
    });
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = undefined;
    for (const resume of waiters ?? []) resume();
  }

  /** Whether everything waits for the reader: from a full socket until it has drained. */
  #isHeld(): boolean {
    // What the kernel took at once is gone, although 'drain' has yet to say so.
    if (!this.#held && this.#raw?.writableNeedDrain === true && this.#raw.writableLength > 0) {
      this.#held = true;
      this.#raw.once('drain', () => this.#release());
    }
    return this.#held;
  }

  #release(): void {
    this.#held = false;
    this.#taken++;
    this.flush();
    this.#wake();
  }

  #send(frames: Frames): void {
    if (!isOpen(this.#websocket)) return;
    if (this.#raw !== undefined) {
      this.#outbox.write(this.#raw, frames);
      return;
    }
    const { envelopes, bodies } = frames;
    const last = bodies.length - 1;
    for (let i = 0; i <= last; i++) {
      const message = wholeMessage(envelopes[i], bodies[i] as Buffer);
      if (i < last || this.#websocket.bufferedAmount < PIECE) {
        this.#websocket.send(message, { binary: false });
        continue;
      }
      this.#held = true;
      this.#websocket.send(message, { binary: false }, () => this.#release());
    }
  }
}
