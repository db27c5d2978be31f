import type { Writable } from 'node:stream';
import type { ExecutionOutcome } from '../execution/types.ts';
import type { FlushScheduler, SendQueue } from './queue.ts';

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
const FIN_TEXT = 0x81;
const CLOSING_BRACE = 0x7d;

/** Writes messages to a socket, in order. */
type FrameWriter = (socket: Writable, frames: Frames) => void;

/** Flushes the queues of an endpoint and writes their messages. */
export interface FrameScheduler extends FlushScheduler {
  readonly write: FrameWriter;
}

/**
 * Writes all messages as WebSocket text frames (RFC 6455 §5.2: final, unmasked) in one write to the socket: a
 * system call costs more than executing, serialising and framing one message.
 */
function writeFrames(socket: Writable, frames: Frames): void {
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

/** Bytes of the messages that are written as text. Longer text is copied once more by Node. */
const MAX_TEXT = 16 * 1024;

/** The messages of one socket, whose results another socket receives next. */
interface Repeated {
  readonly bodies: readonly Buffer[];
  /** The lengths of the prefixes that `parts` was created for. */
  lengths: readonly number[];
  /** The text before, between and after the prefixes; undefined until the results repeat. */
  parts: readonly string[] | undefined;
}

/**
 * Creates a writer that keeps the last results. A fan-out sends the same results to many sockets; joining their text
 * with the prefixes of a socket is cheaper than copying their bytes.
 */
export function createFrameWriter(): FrameWriter {
  let last: Repeated = { bodies: [], lengths: [], parts: undefined };
  return (socket, frames) => {
    const { bodies, envelopes } = frames;
    if (frames.bytes > MAX_TEXT || !hasPrefixes(envelopes)) writeFrames(socket, frames);
    else if (!isEqual(bodies, last.bodies)) {
      last = { bodies, lengths: [], parts: undefined };
      writeFrames(socket, frames);
    } else socket.write(textOf(last, envelopes), 'latin1');
  };
}

function hasPrefixes(
  envelopes: readonly (FrameEnvelope | undefined)[],
): envelopes is readonly FrameEnvelope[] {
  for (let i = 0; i < envelopes.length; i++) if (envelopes[i] === undefined) return false;
  return true;
}

function isEqual(bodies: readonly Buffer[], others: readonly Buffer[]): boolean {
  if (bodies.length !== others.length) return false;
  for (let i = 0; i < bodies.length; i++) if (bodies[i] !== others[i]) return false;
  return true;
}

/** Returns the frames as text, one character per byte. */
function textOf(repeated: Repeated, envelopes: readonly FrameEnvelope[]): string {
  let { parts } = repeated;
  if (parts === undefined || !hasLengths(envelopes, repeated.lengths)) {
    repeated.lengths = envelopes.map(({ prefix }) => prefix.length);
    parts = partsOf(repeated.bodies, repeated.lengths);
    repeated.parts = parts;
  }
  let text = parts[0] as string;
  for (let i = 0; i < envelopes.length; i++) {
    text += (envelopes[i] as FrameEnvelope).prefix + (parts[i + 1] as string);
  }
  return text;
}

function hasLengths(envelopes: readonly FrameEnvelope[], lengths: readonly number[]): boolean {
  for (let i = 0; i < envelopes.length; i++) {
    if ((envelopes[i] as FrameEnvelope).prefix.length !== lengths[i]) return false;
  }
  return true;
}

/** The first header, then each body with the next header. The headers contain the lengths of the prefixes. */
function partsOf(bodies: readonly Buffer[], prefixLengths: readonly number[]): string[] {
  const headers = bodies.map((body, i) => headerText((prefixLengths[i] as number) + body.length + 1));
  return [
    headers[0] as string,
    ...bodies.map((body, i) => `${body.toString('latin1')}}${headers[i + 1] ?? ''}`),
  ];
}

/** The header of a frame of less than 64 KiB, one character per byte. */
function headerText(length: number): string {
  return length < 126
    ? String.fromCharCode(FIN_TEXT, length)
    : String.fromCharCode(FIN_TEXT, 126, length >>> 8, length & 0xff);
}

/** An operation whose private results are sent. */
export interface ResultTarget {
  readonly queue: SendQueue;
  send(body: string | Buffer, mode: 'batched'): void;
}

/** Sends the result of one event that was executed for one subscription alone. */
export type SendPrivateResult = (target: ResultTarget, outcome: ExecutionOutcome) => void;

/** The length from which a result is sent immediately and compared with the previous result. */
const LARGE_RESULT = 16 * 1024;
/** The size up to which a buffer is kept for the next result. */
const MAX_KEPT_BUFFER = 1024 * 1024;
const EMPTY = Buffer.alloc(0);

/**
 * Large results are written immediately, which releases their buffers if the client keeps up. Slow clients
 * often wait for equal results, so a result that equals the previous one shares its buffer.
 */
export function createPrivateResultSender(): SendPrivateResult {
  const encode = createEncoder();
  let previous: WeakRef<Buffer> | undefined;
  return (target, { body, release }) => {
    if (body.length < LARGE_RESULT) {
      target.send(body, 'batched');
      return;
    }
    const result = typeof body === 'string' ? encode(body) : { bytes: body, release };
    const kept = previous?.deref();
    if (kept?.equals(result.bytes) === true) {
      target.send(kept, 'batched');
      result.release?.();
      return;
    }
    target.send(result.bytes, 'batched');
    if (target.queue.flushAndRelease()) result.release?.();
    else previous = new WeakRef(result.bytes);
  };
}

/** Creates an encoder that reuses the buffer that was released last. */
function createEncoder(): (text: string) => { bytes: Buffer; release: () => void } {
  let free = EMPTY;
  return (text) => {
    const length = Buffer.byteLength(text);
    const buffer = free.length < length || length * 2 < free.length ? Buffer.allocUnsafeSlow(length) : free;
    free = EMPTY;
    buffer.write(text);
    const release = (): void => {
      if (buffer.length <= MAX_KEPT_BUFFER) free = buffer;
    };
    return { bytes: buffer.subarray(0, length), release };
  };
}
