import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate, setTimeout } from 'node:timers';
import type { WebSocketLike } from '../../types/subscriptions.ts';
import type { StreamWriter } from '../http/stream.ts';
import { type FrameEnvelope, type FrameScheduler, Frames, wholeMessage } from './frames.ts';
import type { FlushMode } from './operation.ts';

// From the module: fake timers of a test must not delay events.

/** A queue of messages that can be written. */
interface Flushable {
  flush(): void;
}

/** Flushes the queues of an endpoint, each once per burst, however many messages it has. */
export interface FlushScheduler {
  /** Flushes the queue after a millisecond, together with messages that have arrived until then. */
  flushBatched(queue: Flushable): void;
  /** Flushes the queue at the end of this iteration of the event loop: the client waits for a response. */
  flushSoon(queue: Flushable): void;
  /** Counts a queued message, for `isBackpressured`. */
  countMessage(): void;
  /** True if so many messages are queued that a producer should await `yield()`. */
  isBackpressured(): boolean;
  /** Flushes all queues and yields to the event loop. */
  yield(): Promise<void>;
}

/** Milliseconds of a burst: related events often arrive in successive iterations of the event loop. */
const BURST_TIME = 1;
/** Queues flushed before the scheduler yields, so that a huge fan-out does not delay pings and handshakes. */
const MAX_FLUSHES = 512;
/** The number of queued messages from which producers have to yield. */
const MAX_MESSAGES = 32_768;

export function createFlushScheduler(): FlushScheduler {
  let batched: Flushable[] = [];
  let urgent: Flushable[] = [];
  let isScheduled = false;
  let messages = 0;

  function flushBurst(): void {
    const queues = batched;
    batched = queues.length > MAX_FLUSHES ? queues.splice(MAX_FLUSHES) : [];
    isScheduled = batched.length > 0;
    if (isScheduled) setImmediate(flushBurst);
    else messages = 0;
    for (const queue of queues) queue.flush();
  }

  /**
   * Executing the first events of a burst may take longer than the time of the burst. The event loop then reads
   * the other events, which have arrived meanwhile, before the sockets are written.
   */
  function flushAfterPoll(): void {
    setImmediate(flushBurst);
  }

  function flushUrgent(): void {
    const queues = urgent;
    urgent = [];
    for (const queue of queues) queue.flush();
  }

  return {
    flushBatched(queue) {
      batched.push(queue);
      if (isScheduled) return;
      isScheduled = true;
      setTimeout(flushAfterPoll, BURST_TIME);
    },
    flushSoon(queue) {
      if (urgent.push(queue) === 1) setImmediate(flushUrgent);
    },
    countMessage() {
      messages++;
    },
    isBackpressured: () => messages > MAX_MESSAGES,
    yield() {
      flushBurst();
      return new Promise((resolve) => setImmediate(resolve));
    },
  };
}

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

/** `OPEN`, the same number in every implementation (WHATWG WebSockets, "ready state"). */
const OPEN = 1;

export const isOpen = (websocket: WebSocketLike): boolean => websocket.readyState === OPEN;

/** The text around the payload of a message, one character per UTF-8 byte. */
export interface Envelope {
  readonly before: string;
  readonly after: string;
  /** Whether the message may be dropped if the client is slow. */
  readonly droppable: boolean;
}

/** A message in its envelope. Events of shared subscriptions have the same body for all clients. */
interface Message {
  readonly envelope: Envelope;
  readonly body: Buffer;
}

/** Bytes that are written at a time. Written messages cannot be dropped. */
export const STREAM_CHUNK_SIZE: number = 64 * 1024;
/** Larger bodies are written by reference: they would be copied for each client otherwise. */
const MAX_COPIED = 16 * 1024;

/** Joins messages to one text, one character per byte. */
export type JoinMessages = (messages: readonly Message[]) => string;

/**
 * Creates a function that keeps its last result: clients of a shared subscription have equal messages in
 * their queues.
 */
export function createJoin(): JoinMessages {
  let last: readonly Message[] = [];
  let text = '';
  return (messages) => {
    if (!areEqual(last, messages)) {
      text = '';
      for (const { envelope, body } of messages) {
        text += envelope.before + body.toString('latin1') + envelope.after;
      }
      last = messages;
    }
    return text;
  };
}

function areEqual(a: readonly Message[], b: readonly Message[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i] as Message, b[i] as Message];
    if (x.body !== y.body || x.envelope.before !== y.envelope.before) return false;
    if (x.envelope.after !== y.envelope.after) return false;
  }
  return true;
}

/**
 * The messages of one event stream, in order. Writes once per burst, and pauses while the client does not
 * read.
 */
export class StreamQueue implements Flushable {
  readonly #scheduler: FlushScheduler;
  readonly #join: JoinMessages;
  #writer: StreamWriter | undefined;
  #messages: Message[] = [];
  #bytes = 0;
  #isScheduled = false;
  #isUrgent = false;
  #isPaused = false;
  #waiters: (() => void)[] = [];

  constructor(scheduler: FlushScheduler, join: JoinMessages) {
    this.#scheduler = scheduler;
    this.#join = join;
  }

  /** The number of bytes that the client has not read. */
  get pendingBytes(): number {
    return this.#bytes + (this.#writer?.pendingBytes ?? 0);
  }
  get isEmpty(): boolean {
    return this.#messages.length === 0;
  }
  /** True while a source waits for the client. */
  get hasWaiters(): boolean {
    return this.#waiters.length > 0;
  }
  /** The number of times that a slow client has read all bytes sent to it. */
  get drains(): number {
    return this.#writer?.drains ?? 0;
  }

  /** Writes the messages from now on. */
  open(writer: StreamWriter): void {
    this.#writer = writer;
    this.flush();
    this.#resume();
  }

  push(envelope: Envelope, body: Buffer, mode: FlushMode): void {
    this.#messages.push({ envelope, body });
    this.#bytes += lengthOf(envelope, body);
    this.#scheduler.countMessage();
    if (mode === 'soon' && !this.#isUrgent) {
      this.#isUrgent = true;
      this.#scheduler.flushSoon(this);
    } else if (mode === 'batched' && !this.#isScheduled) {
      this.#isScheduled = true;
      this.#scheduler.flushBatched(this);
    }
  }

  /** Drops the oldest droppable messages until at most `limit` bytes are queued. */
  dropOldest(limit: number): void {
    this.#messages = this.#messages.filter(({ envelope, body }) => {
      const isKept = this.#bytes <= limit || !envelope.droppable;
      if (!isKept) this.#bytes -= lengthOf(envelope, body);
      return isKept;
    });
  }

  /** Drops all messages and resumes all sources. */
  discard(): void {
    this.#messages = [];
    this.#bytes = 0;
    this.#resume();
  }

  /** Writes messages until the client is slow. */
  flush(): void {
    this.#isScheduled = false;
    this.#isUrgent = false;
    const writer = this.#writer;
    while (writer !== undefined && this.#messages.length > 0 && !writer.isSlow) {
      this.#write(writer, this.#bytes > STREAM_CHUNK_SIZE ? this.#take(STREAM_CHUNK_SIZE) : this.#takeAll());
    }
    if (writer?.isSlow === true) this.#pause(writer);
  }

  /** Writes all messages even if the client is slow, because the response is about to end. */
  flushAll(): void {
    if (this.#writer !== undefined && this.#messages.length > 0) this.#write(this.#writer, this.#takeAll());
    this.discard();
  }

  /** Resolves when the client has read something, or is closed; undefined if it is not slow. */
  waitForDrain(): Promise<void> | undefined {
    if (this.#bytes > STREAM_CHUNK_SIZE) this.flush();
    const isSlow = this.#writer === undefined ? this.#bytes > STREAM_CHUNK_SIZE : this.#writer.isSlow;
    return isSlow ? new Promise((resolve) => this.#waiters.push(resolve)) : undefined;
  }

  #takeAll(): Message[] {
    const messages = this.#messages;
    this.#messages = [];
    this.#bytes = 0;
    return messages;
  }

  /** Removes and returns the first messages, about `limit` bytes and at least one message. */
  #take(limit: number): Message[] {
    let count = 0;
    for (let bytes = 0; count < this.#messages.length && bytes < limit; count++) {
      const { envelope, body } = this.#messages[count] as Message;
      bytes += lengthOf(envelope, body);
      this.#bytes -= lengthOf(envelope, body);
    }
    return this.#messages.splice(0, count);
  }

  #write(writer: StreamWriter, messages: readonly Message[]): void {
    const [first] = messages;
    if (messages.length > 1 || first === undefined || first.body.length <= MAX_COPIED) {
      writer.write(this.#join(messages), 'latin1');
      return;
    }
    writer.write(first.envelope.before, 'latin1');
    writer.write(first.body);
    writer.write(first.envelope.after, 'latin1');
  }

  #pause(writer: StreamWriter): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    const drained = writer.waitForDrain() ?? Promise.resolve();
    drained.then(() => {
      this.#isPaused = false;
      this.flush();
      this.#resume();
    });
  }

  #resume(): void {
    for (const resume of this.#waiters.splice(0)) resume();
  }
}

const lengthOf = ({ before, after }: Envelope, body: Buffer): number =>
  before.length + body.length + after.length;
