import { FIN_TEXT, type FrameEnvelope, type FrameWriter, writeFrames } from './frames.ts';

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
