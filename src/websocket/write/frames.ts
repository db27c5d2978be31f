import type { Writable } from 'node:stream';
import type { FlushScheduler } from '../../subscriptions/flush-scheduler.ts';

/**
 * The start of a message, which consists of `prefix`, the result and `}`, so that many sockets can share the
 * result.
 */
export interface FrameEnvelope {
  /** The start of the message, one character per UTF-8 byte. */
  readonly prefix: string;
  /** Whether it may be dropped if the client is slow. */
  readonly droppable: boolean;
}

/** The queued messages of one socket, in order. Parallel lists take less memory than a list of objects. */
export class Frames {
  /** The envelopes of the messages; undefined for a message that is complete without an envelope. */
  readonly envelopes: (FrameEnvelope | undefined)[] = [];
  readonly bodies: Buffer[] = [];
  /** Bytes of all messages without frame headers. */
  bytes = 0;

  push(envelope: FrameEnvelope | undefined, body: Buffer): void {
    this.envelopes.push(envelope);
    this.bodies.push(body);
    this.bytes += messageLength(envelope, body);
  }

  /** Removes and returns the first messages, about `limit` bytes and at least one message. */
  take(limit: number): Frames {
    const taken = new Frames();
    let count = 0;
    for (; count < this.bodies.length && (count === 0 || taken.bytes < limit); count++) {
      taken.push(this.envelopes[count], this.bodies[count] as Buffer);
    }
    this.envelopes.splice(0, count);
    this.bodies.splice(0, count);
    this.bytes -= taken.bytes;
    return taken;
  }

  /** Drops the oldest droppable messages until at most `limit` bytes are left. */
  dropOldest(limit: number): void {
    for (let i = 0; i < this.envelopes.length && this.bytes > limit; ) {
      const envelope = this.envelopes[i];
      if (envelope?.droppable !== true) {
        i++;
        continue;
      }
      this.bytes -= messageLength(envelope, this.bodies[i] as Buffer);
      this.envelopes.splice(i, 1);
      this.bodies.splice(i, 1);
    }
  }
}

/**
 * Larger bodies are written by reference: copying them for each socket costs more than another part of a
 * writev.
 */
const MAX_COPIED = 4096;
export const FIN_TEXT = 0x81;
const CLOSING_BRACE = 0x7d;

/** Writes messages to a socket, in order. */
export type FrameWriter = (socket: Writable, frames: Frames) => void;

/** Flushes the queues of an endpoint and writes their messages. */
export interface FrameScheduler extends FlushScheduler {
  readonly write: FrameWriter;
}

/**
 * Writes all messages as WebSocket text frames (RFC 6455 §5.2: final, unmasked) in one write to the socket: a
 * system call costs more than executing, serialising and framing one message.
 */
export function writeFrames(socket: Writable, frames: Frames): void {
  const { envelopes, bodies } = frames;
  const count = bodies.length;
  const copied = copiedLength(frames);
  const byReference = bodies.some(isLarge);
  // Avoids the buffer pool for a slow client, whose small messages would each keep a whole slab in memory.
  const chunk = socket.writableLength > 0 ? Buffer.allocUnsafeSlow(copied) : Buffer.allocUnsafe(copied);
  if (byReference) socket.cork();
  let start = 0;
  let at = 0;
  let previous: FrameEnvelope | undefined;
  let prefixStart = 0;
  for (let i = 0; i < count; i++) {
    const body = bodies[i] as Buffer;
    const envelope = envelopes[i];
    at = writeHeader(chunk, at, messageLength(envelope, body));
    if (envelope !== undefined && envelope === previous) {
      // Copying the bytes of the last prefix is cheaper than converting its text again.
      chunk.copyWithin(at, prefixStart, prefixStart + envelope.prefix.length);
      prefixStart = at;
      at += envelope.prefix.length;
    } else if (envelope !== undefined) {
      previous = envelope;
      prefixStart = at;
      at += chunk.write(envelope.prefix, at, 'latin1');
    }
    if (isLarge(body)) {
      socket.write(chunk.subarray(start, at));
      socket.write(body);
      start = at;
    } else {
      chunk.set(body, at);
      at += body.length;
    }
    if (envelope !== undefined) chunk[at++] = CLOSING_BRACE;
  }
  if (start < at) socket.write(start === 0 ? chunk : chunk.subarray(start, at));
  if (byReference) socket.uncork();
}

const isLarge = (body: Buffer): boolean => body.length > MAX_COPIED;

/** Bytes of all frames without the bodies that are written by reference. */
function copiedLength({ envelopes, bodies }: Frames): number {
  let copied = 0;
  for (let i = 0; i < bodies.length; i++) {
    const body = bodies[i] as Buffer;
    const length = messageLength(envelopes[i], body);
    copied += headerLength(length) + length;
    if (isLarge(body)) copied -= body.length;
  }
  return copied;
}

/** Bytes of one message without the frame header. */
function messageLength(envelope: FrameEnvelope | undefined, body: Buffer): number {
  return envelope === undefined ? body.length : envelope.prefix.length + body.length + 1;
}

/** Returns one message as a single buffer, for sockets whose frames the WebSocket implementation writes. */
export function wholeMessage(envelope: FrameEnvelope | undefined, body: Buffer): Buffer {
  if (envelope === undefined) return body;
  return Buffer.concat([Buffer.from(envelope.prefix, 'latin1'), body, Buffer.from('}')]);
}

const headerLength = (length: number): number => (length < 126 ? 2 : length < 65_536 ? 4 : 10);

function writeHeader(target: Buffer, at: number, length: number): number {
  target[at] = FIN_TEXT;
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
