import type { Writable } from 'node:stream';

/** What goes around a shared body: `prefix + body + '}'`. */
export interface Envelope {
  /** The start of the message, one character per UTF-8 byte. */
  readonly prefix: string;
  /** Whether a slow reader may lose it. */
  readonly droppable: boolean;
}

/** Messages waiting to be written to one socket, in order; parallel lists, as there may be many. */
export class Frames {
  /** A message without envelope is whole as it is. */
  readonly envelopes: (Envelope | undefined)[] = [];
  readonly bodies: Buffer[] = [];
  /** Bytes waiting, heads not counted. */
  bytes = 0;

  push(envelope: Envelope | undefined, body: Buffer): void {
    this.envelopes.push(envelope);
    this.bodies.push(body);
    this.bytes += messageLength(envelope, body);
  }

  /** Removes and returns the first messages, of `limit` bytes or one message. */
  take(limit: number): Frames {
    const piece = new Frames();
    let count = 0;
    for (; count < this.bodies.length && (count === 0 || piece.bytes < limit); count++) {
      piece.push(this.envelopes[count], this.bodies[count] as Buffer);
    }
    this.envelopes.splice(0, count);
    this.bodies.splice(0, count);
    this.bytes -= piece.bytes;
    return piece;
  }

  /** Drops the oldest messages that may be dropped until no more than `limit` bytes wait. */
  shrink(limit: number): void {
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

/** Bodies above this are written by reference: copying them for each socket costs more than a part of a writev. */
const LARGE = 4096;
const FIN_TEXT = 0x81;
const CLOSING_BRACE = 0x7d;

/** Writes messages to a socket, in order. */
export type FrameWriter = (socket: Writable, frames: Frames) => void;

/**
 * A writer that knows the body it wrote last. One event for many sockets is the same body again and again: as text it goes
 * out a little cheaper than as bytes that are copied for each.
 */
export function createFrameWriter(): FrameWriter {
  let last: Buffer | undefined;
  let rest = '';
  return (socket, frames) => {
    const [body] = frames.bodies;
    const [envelope] = frames.envelopes;
    if (body === undefined || envelope === undefined || frames.bodies.length > 1 || body.length > LARGE) {
      writeFrames(socket, frames);
    } else if (body !== last) {
      last = body;
      rest = '';
      writeFrames(socket, frames);
    } else {
      if (rest === '') rest = `${body.toString('latin1')}}`;
      socket.write(textHead(envelope.prefix.length + rest.length) + envelope.prefix + rest, 'latin1');
    }
  };
}

/** The head of a small frame, one character per byte. */
function textHead(length: number): string {
  return length < 126
    ? String.fromCharCode(FIN_TEXT, length)
    : String.fromCharCode(FIN_TEXT, 126, length >>> 8, length & 0xff);
}

/**
 * Writes all messages as WebSocket text frames (RFC 6455 §5.2: final, unmasked) in one write to the socket: a system call
 * costs more than executing, serialising and framing a message together.
 */
function writeFrames(socket: Writable, frames: Frames): void {
  const { envelopes, bodies } = frames;
  const count = bodies.length;
  let copied = 0;
  let byReference = false;
  for (let i = 0; i < count; i++) {
    const body = bodies[i] as Buffer;
    const length = messageLength(envelopes[i], body);
    copied += headLength(length) + length;
    if (body.length > LARGE) {
      copied -= body.length;
      byReference = true;
    }
  }
  // A reader that lags would hold a whole slab of the pool for each small piece.
  const chunk = socket.writableLength > 0 ? Buffer.allocUnsafeSlow(copied) : Buffer.allocUnsafe(copied);
  if (byReference) socket.cork();
  let start = 0;
  let at = 0;
  for (let i = 0; i < count; i++) {
    const body = bodies[i] as Buffer;
    const envelope = envelopes[i];
    at = writeHead(chunk, at, messageLength(envelope, body));
    if (envelope !== undefined) at += chunk.write(envelope.prefix, at, 'latin1');
    if (body.length > LARGE) {
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

/** The bytes of one message, head not counted. */
function messageLength(envelope: Envelope | undefined, body: Buffer): number {
  return envelope === undefined ? body.length : envelope.prefix.length + body.length + 1;
}

/** One message in one piece, for sockets we cannot frame for. */
export function wholeMessage(envelope: Envelope | undefined, body: Buffer): Buffer {
  if (envelope === undefined) return body;
  return Buffer.concat([Buffer.from(envelope.prefix, 'latin1'), body, Buffer.from('}')]);
}

const headLength = (length: number): number => (length < 126 ? 2 : length < 65_536 ? 4 : 10);

function writeHead(target: Buffer, at: number, length: number): number {
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
