import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocketLike } from '../../../types/subscriptions.ts';
import type { Flushable } from '../../subscriptions/flush-scheduler.ts';
import type { FlushMode } from '../../subscriptions/live-operation.ts';
import { type FrameEnvelope, type FrameScheduler, Frames, wholeMessage } from './frames.ts';
import { isOpen } from './ready-state.ts';

/**
 * Bytes that are written to the socket at a time. Written messages cannot be dropped; `drains` grows per
 * chunk.
 */
export const CHUNK_SIZE: number = 64 * 1024;

/**
 * The messages of one WebSocket, in order. Writes once per burst, and pauses while the client does not read.
 */
export class SendQueue implements Flushable {
  readonly #websocket: WebSocketLike;
  /** The underlying socket, if we may write frames to it; undefined if extensions transform them. */
  readonly #socket: Duplex | undefined;
  readonly #scheduler: FrameScheduler;
  #frames: Frames | undefined;
  /** `#socketBytes()` when `#frames` was created. */
  #initialSocketBytes = 0;
  #isUrgent = false;
  #isPaused = false;
  #drains = 0;
  #waiters: (() => void)[] | undefined;

  constructor(websocket: WebSocketLike, socket: Duplex | undefined, scheduler: FrameScheduler) {
    this.#websocket = websocket;
    this.#socket = websocket.extensions === '' ? socket : undefined;
    this.#scheduler = scheduler;
  }

  /** The estimated number of bytes that the client has not read. */
  get pendingBytes(): number {
    const sent = this.#socketBytes();
    return this.#frames === undefined ? sent : sent + this.#frames.bytes;
  }

  /** Whether `pendingBytes` is over the limit. Reads the socket once per burst. */
  exceeds(limit: number): boolean {
    const frames = this.#frames;
    if (frames !== undefined && !this.#isPaused && frames.bytes + this.#initialSocketBytes <= limit)
      return false;
    return this.pendingBytes > limit;
  }

  /** The number of times that a slow client has read all bytes sent to it. */
  get drains(): number {
    return this.#drains;
  }

  /** True while a producer waits for the client. */
  get hasWaiters(): boolean {
    return this.#waiters !== undefined;
  }

  push(envelope: FrameEnvelope | undefined, body: Buffer, mode: FlushMode): void {
    if (this.#frames === undefined) {
      this.#frames = new Frames();
      this.#initialSocketBytes = this.#socketBytes();
      if (mode === 'batched') this.#scheduler.flushBatched(this);
    }
    if (mode === 'soon' && !this.#isUrgent) {
      this.#isUrgent = true;
      this.#scheduler.flushSoon(this);
    }
    this.#frames.push(envelope, body);
    this.#scheduler.countMessage();
  }

  /** Drops the oldest droppable messages until at most `limit` bytes are queued. */
  dropOldest(limit: number): void {
    this.#frames?.dropOldest(limit);
  }

  /** Drops all messages and resumes all producers. */
  discard(): void {
    this.#frames = undefined;
    this.#resumeProducers();
  }

  /** Writes messages until the client is slow. */
  flush(): void {
    this.#isUrgent = false;
    while (this.#frames !== undefined && !this.#isSlow()) {
      const frames = this.#frames.bytes > CHUNK_SIZE ? this.#frames.take(CHUNK_SIZE) : this.#frames;
      if (frames === this.#frames || this.#frames.bodies.length === 0) this.#frames = undefined;
      this.#write(frames);
    }
  }

  /** Flushes; true if the buffers of all messages may be reused. */
  flushAndRelease(): boolean {
    this.flush();
    // The kernel, or TLS, has copied them. Another kind of stream might pass the buffers on.
    return this.#socket instanceof Socket && this.pendingBytes === 0;
  }

  /** Writes all messages even if the client is slow, because the socket is about to close. */
  flushAll(): void {
    if (this.#frames !== undefined) this.#write(this.#frames);
    this.discard();
  }

  /**
   * Resolves when the client has read something, or is closed; undefined if it is not slow. A socket that is
   * closing or has failed is never slow, because it drops messages. A source that is always ready would then
   * run without end, so it waits for the end of the connection.
   */
  waitForDrain(): Promise<void> | undefined {
    if (this.#frames !== undefined) {
      // The socket is as it was at the last flush, whose result is known.
      if (this.#frames.bytes <= CHUNK_SIZE && !this.#isPaused) return undefined;
      this.flush();
    }
    if (!this.#isSlow() && isOpen(this.#websocket) && this.#socket?.writable !== false) return undefined;
    return new Promise((resolve) => {
      this.#waiters ??= [];
      this.#waiters.push(resolve);
    });
  }

  #socketBytes(): number {
    return this.#socket === undefined ? this.#websocket.bufferedAmount : this.#socket.writableLength;
  }

  #resumeProducers(): void {
    const waiters = this.#waiters;
    this.#waiters = undefined;
    for (const resume of waiters ?? []) resume();
  }

  /** True while the socket is full, until it has drained. */
  #isSlow(): boolean {
    // Bytes that the kernel took immediately are not pending, although 'drain' is still to be emitted.
    if (!this.#isPaused && this.#socket?.writableNeedDrain === true && this.#socket.writableLength > 0) {
      this.#isPaused = true;
      this.#socket.once('drain', () => this.#onDrain());
    }
    return this.#isPaused;
  }

  #onDrain(): void {
    this.#isPaused = false;
    this.#drains++;
    this.flush();
    this.#resumeProducers();
  }

  #write(frames: Frames): void {
    if (!isOpen(this.#websocket)) return;
    if (this.#socket !== undefined) {
      this.#scheduler.write(this.#socket, frames);
      return;
    }
    const { envelopes, bodies } = frames;
    const last = bodies.length - 1;
    for (let i = 0; i <= last; i++) {
      const message = wholeMessage(envelopes[i], bodies[i] as Buffer);
      if (i < last || this.#websocket.bufferedAmount < CHUNK_SIZE) {
        this.#websocket.send(message, { binary: false });
        continue;
      }
      this.#isPaused = true;
      this.#websocket.send(message, { binary: false }, () => this.#onDrain());
    }
  }
}
