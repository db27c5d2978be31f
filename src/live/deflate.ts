import { constants, deflateRawSync } from 'node:zlib';
import type { Envelope } from './queue.ts';
import { Messages } from './queue.ts';

// Compressed messages of WebSockets (RFC 7692) without context takeover: each message can be decompressed alone. That
// makes the compressed body of an event equal for all sockets. Only the text around it differs, such as the id of the
// operation: a stored block before the body and one behind it (RFC 1951 §3.2.4) contain it as it is.

/**
 * The parameters of an acceptable offer, and their values (RFC 7692 §7.1). A smaller window for our messages would need
 * other bytes than those of all sockets.
 */
const PARAMETERS = new Map([
  ['server_no_context_takeover', /^$/],
  ['client_no_context_takeover', /^$/],
  ['server_max_window_bits', /^15$/],
  ['client_max_window_bits', /^(?:[89]|1[0-5])?$/],
]);
/** 4 KiB, which contain most operations: while a socket is open, ws keeps the window of its messages in memory. */
const CLIENT_WINDOW_BITS = 12;

/**
 * Returns the first acceptable offer of a client, as we agree to it; undefined if there is none. ws would refuse the
 * upgrade for an offer that the RFC lets a server decline.
 */
export function agreedOffer(header: string | undefined): string | undefined {
  for (const offer of header?.split(',') ?? []) {
    const agreed = agreeTo(offer);
    if (agreed !== undefined) return agreed;
  }
  return undefined;
}

function agreeTo(offer: string): string | undefined {
  const [name, ...parameters] = offer.split(';').map((part) => part.trim());
  const values = new Map<string, string>();
  for (const parameter of parameters) {
    const [, key = '', , value = ''] = /^(\w+)(?:=("?)(\d+)\2)?$/.exec(parameter) ?? [];
    if (values.has(key) || PARAMETERS.get(key)?.test(value) !== true) return undefined;
    values.set(key, value);
  }
  if (name !== 'permessage-deflate') return undefined;
  const ours = values.has('server_max_window_bits') ? '; server_max_window_bits=15' : '';
  const theirs = values.get('client_max_window_bits');
  // A client with a smaller window needs no limit. Its zlib may even exceed 8 bits by one.
  const isLimited = theirs !== undefined && (theirs === '' || Number(theirs) > CLIENT_WINDOW_BITS);
  return `${name}${ours}${isLimited ? `; client_max_window_bits=${CLIENT_WINDOW_BITS}` : ''}`;
}

/** Smaller events of several sockets are sent as they are. */
const MIN_SHARED = 128;
/** Smaller bodies of one socket are sent as they are: the compression costs more than the bytes. */
const MIN_PRIVATE = 1024;
/** Larger bodies are sent as they are: they would block the event loop for more than some milliseconds. */
const MAX_BYTES = 1024 * 1024;
/** Above, the lowest level of zlib is used. */
const LARGE_BYTES = 32 * 1024;

const FIN_TEXT_RSV1 = 0xc1;

/** Bodies that several sockets get. */
const shared = new WeakSet<Buffer>();

/** Notes that a body is sent to several sockets, so that it is compressed once for all. */
export const markShared = (body: Buffer): void => void shared.add(body);

/** Compressed bodies; false if the body is sent as it is. */
const compressed = new WeakMap<Buffer, Buffer | false>();

function compress(body: Buffer): Buffer | false {
  const least = shared.has(body) ? MIN_SHARED : MIN_PRIVATE;
  if (body.length < least || body.length > MAX_BYTES) return false;
  const level = body.length > LARGE_BYTES ? 1 : 3;
  // Ends with an empty block, so that another block can follow on a byte boundary.
  const bytes = deflateRawSync(body, { level, finishFlush: constants.Z_SYNC_FLUSH });
  return bytes.length < body.length ? bytes : false;
}

function compressedOf(body: Buffer): Buffer | false {
  let bytes = compressed.get(body);
  if (bytes === undefined) {
    bytes = compress(body);
    compressed.set(body, bytes);
  }
  return bytes;
}

/** A block of at most 65 535 bytes as they are, one character per byte: an id has at most 256 characters. */
function stored(text: string): string {
  if (text === '') return '';
  const [low, high] = [text.length & 0xff, text.length >>> 8];
  return `\0${String.fromCharCode(low, high, low ^ 0xff, high ^ 0xff)}${text}`;
}

/** The texts around all messages of an operation, as stored blocks. */
const storedEnvelopes = new WeakMap<Envelope, Envelope>();

function storedOf(envelope: Envelope): Envelope {
  let found = storedEnvelopes.get(envelope);
  if (found === undefined) {
    const before = stored(envelope.before);
    // The receiver adds 00 00 ff ff to the message: with this byte an empty block (RFC 7692 §7.2.2).
    const after = `${stored(envelope.after)}\0`;
    found = { before, after, firstByte: FIN_TEXT_RSV1 };
    storedEnvelopes.set(envelope, found);
  }
  return found;
}

/** Returns the messages with the bodies that are worth it compressed. */
export function deflated(messages: Messages): Messages {
  const result = new Messages();
  for (let i = 0; i < messages.bodies.length; i++) {
    const body = messages.bodies[i] as Buffer;
    const envelope = messages.envelopes[i] as Envelope;
    const bytes = compressedOf(body);
    if (bytes === false) result.push(envelope, body);
    else result.push(storedOf(envelope), bytes);
  }
  return result;
}
