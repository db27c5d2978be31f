import type { Duplex, Writable } from 'node:stream';
import type { WebSocketLike } from '../../types/subscriptions.ts';
import { deflated } from './deflate.ts';
import {
  CHUNK_SIZE,
  type Envelope,
  type FlushScheduler,
  lengthOf,
  type Messages,
  OutputQueue,
} from './queue.ts';

/** `OPEN`, the same number in every implementation (WHATWG WebSockets, "ready state"). */
const OPEN = 1;

export const isOpen = (websocket: WebSocketLike): boolean => websocket.readyState === OPEN;

/** The messages of one WebSocket. We write its frames ourselves if we may. */
export class SocketQueue extends OutputQueue {
  readonly #websocket: WebSocketLike;
  /** The underlying socket, if we may write frames to it; undefined if extensions transform them. */
  readonly #socket: Duplex | undefined;
  /** Whether messages may be compressed, as the option `perMessageDeflate` has negotiated. */
  readonly #deflates: boolean;

  constructor(
    websocket: WebSocketLike,
    socket: Duplex | undefined,
    scheduler: FlushScheduler,
    isShared: boolean,
  ) {
    super(scheduler);
    this.#websocket = websocket;
    this.#deflates = isShared && websocket.extensions !== '';
    this.#socket = this.#deflates || websocket.extensions === '' ? socket : undefined;
  }

  protected get sentBytes(): number {
    return this.#socket === undefined ? this.#websocket.bufferedAmount : this.#socket.writableLength;
  }

  protected get isWritable(): boolean {
    return isOpen(this.#websocket) && this.#socket?.writable !== false;
  }

  protected isFull(): boolean {
    // Bytes that the kernel took immediately are not pending, although 'drain' is still to be emitted.
    if (!this.isPaused && this.#socket?.writableNeedDrain === true && this.#socket.writableLength > 0) {
      this.isPaused = true;
      this.#socket.once('drain', () => this.onDrain());
    }
    return this.isPaused;
  }

  protected write(messages: Messages): void {
    if (!isOpen(this.#websocket)) return;
    if (this.#socket !== undefined) {
      writeFrames(this.#socket, this.#deflates ? deflated(messages) : messages);
      return;
    }
    const { envelopes, bodies } = messages;
    const last = bodies.length - 1;
    for (let i = 0; i <= last; i++) {
      const message = wholeMessage(envelopes[i] as Envelope, bodies[i] as Buffer);
      if (i < last || this.#websocket.bufferedAmount < CHUNK_SIZE) {
        this.#websocket.send(message, { binary: false });
        continue;
      }
      this.isPaused = true;
      this.#websocket.send(message, { binary: false }, () => this.onDrain());
    }
  }
}

/** Returns one message as a single buffer, for sockets whose frames the WebSocket implementation writes. */
const wholeMessage = ({ before, after }: Envelope, body: Buffer): Buffer =>
  before === '' && after === ''
    ? body
    : Buffer.concat([Buffer.from(before, 'latin1'), body, Buffer.from(after, 'latin1')]);

/** Larger bodies are written by reference: copying them for each socket costs more than another part of a writev. */
const MAX_COPIED = 4096;
/** Bytes up to which an event that many sockets get is written as text, one character per byte: see `repeatedText`. */
const MAX_TEXT = 2048;
const FIN_TEXT = 0x81;

/**
 * Writes all messages as WebSocket text frames (RFC 6455 §5.2: final, unmasked) in one write to the socket: a
 * system call costs more than executing, serialising and framing one message.
 */
export function writeFrames(socket: Writable, messages: Messages): void {
  const { envelopes, bodies } = messages;
  const count = bodies.length;
  if (count === 1 && messages.bytes < MAX_TEXT) {
    const text = repeatedText(bodies[0] as Buffer);
    if (text !== undefined) {
      socket.write(frameText(envelopes[0] as Envelope, text), 'latin1');
      return;
    }
  }
  const copied = copiedLength(messages);
  const byReference = bodies.some(isLarge);
  // Avoids the buffer pool for a slow client, whose small messages would each keep a whole slab in memory.
  const chunk = socket.writableLength > 0 ? Buffer.allocUnsafeSlow(copied) : Buffer.allocUnsafe(copied);
  if (byReference) socket.cork();
  let start = 0;
  let at = 0;
  let previous: Envelope | undefined;
  let previousAt = 0;
  for (let i = 0; i < count; i++) {
    const body = bodies[i] as Buffer;
    const envelope = envelopes[i] as Envelope;
    const { before, after } = envelope;
    chunk[at] = envelope.firstByte ?? FIN_TEXT;
    at = writeLength(chunk, at, lengthOf(envelope, body));
    // Copying the bytes of the last prefix is cheaper than converting its text again.
    if (envelope === previous) chunk.copyWithin(at, previousAt, previousAt + before.length);
    else chunk.write(before, at, 'latin1');
    previous = envelope;
    previousAt = at;
    at += before.length;
    if (isLarge(body)) {
      socket.write(chunk.subarray(start, at));
      socket.write(body);
      start = at;
    } else {
      chunk.set(body, at);
      at += body.length;
    }
    for (let j = 0; j < after.length; j++) chunk[at++] = after.charCodeAt(j);
  }
  if (start < at) socket.write(start === 0 ? chunk : chunk.subarray(start, at));
  if (byReference) socket.uncork();
}

let lastBody: Buffer | undefined;
let lastText: string | undefined;

/** The text of a body that was written last. Adding an envelope to a text costs less than copying the bytes again. */
function repeatedText(body: Buffer): string | undefined {
  if (body === lastBody) lastText ??= body.toString('latin1');
  else {
    lastBody = body;
    lastText = undefined;
  }
  return lastText;
}

function frameText({ before, after, firstByte = FIN_TEXT }: Envelope, body: string): string {
  const length = before.length + body.length + after.length;
  const header =
    length < 126
      ? String.fromCharCode(firstByte, length)
      : String.fromCharCode(firstByte, 126, length >>> 8, length & 0xff);
  return header + before + body + after;
}

const isLarge = (body: Buffer): boolean => body.length > MAX_COPIED;

/** Bytes of all frames without the bodies that are written by reference. */
function copiedLength({ envelopes, bodies }: Messages): number {
  let copied = 0;
  for (let i = 0; i < bodies.length; i++) {
    const body = bodies[i] as Buffer;
    const length = lengthOf(envelopes[i] as Envelope, body);
    copied += headerLength(length) + length;
    if (isLarge(body)) copied -= body.length;
  }
  return copied;
}

const headerLength = (length: number): number => (length < 126 ? 2 : length < 65_536 ? 4 : 10);

/** Writes the bytes of a header after the first one. */
function writeLength(target: Buffer, at: number, length: number): number {
  if (length < 126) {
    target[at + 1] = length;
    return at + 2;
  }
  if (length < 65_536) {
    target[at + 1] = 126;
    target[at + 2] = length >>> 8;
    target[at + 3] = length & 0xff;
    return at + 4;
  }
  target[at + 1] = 127;
  target.writeUIntBE(0, at + 2, 2);
  target.writeUIntBE(length, at + 4, 6);
  return at + 10;
}
