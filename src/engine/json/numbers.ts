import { reserve, type Sink, writeByte } from './buffer.ts';

const MINUS = 45;
const POINT = 46;
const ZERO = 48;

/** Writes a 32-bit integer. */
export function writeInt(sink: Sink, value: number): void {
  reserve(sink, 11);
  const buf = sink.buf;
  let pos = sink.pos;
  // No bitwise operators from here on: 2147483648 does not fit into 32 bits.
  let rest = value;
  if (rest < 0) {
    buf[pos++] = MINUS;
    rest = -rest;
  }
  let end = pos + 1;
  for (let bound = 10; bound <= rest; bound *= 10) end++;
  sink.pos = end;
  do {
    const tens = Math.floor(rest / 10);
    buf[--end] = ZERO + rest - tens * 10;
    rest = tens;
  } while (end > pos);
}

/** Writes a finite number. */
export function writeNumber(sink: Sink, value: number): void {
  if (isInt(value)) writeInt(sink, value);
  else if (!writeDecimal(sink, value)) writeAscii(sink, String(value));
}

/**
 * Writes a number with at most two decimal places; returns false for any other. Decimals of up to 15 digits
 * are distinct as doubles, so no shorter decimal exists and JavaScript prints the same digits.
 */
function writeDecimal(sink: Sink, value: number): boolean {
  const hundredths = Math.round(value * 100);
  if (!isInt(hundredths) || hundredths / 100 !== value) return false;
  const whole = Math.trunc(value);
  const rest = Math.abs(hundredths - whole * 100);
  // The whole part of -0.5 has no sign.
  if (value < 0 && whole === 0) writeByte(sink, MINUS);
  writeInt(sink, whole);
  reserve(sink, 3);
  const { buf } = sink;
  const tenths = Math.floor(rest / 10);
  buf[sink.pos++] = POINT;
  buf[sink.pos++] = ZERO + tenths;
  if (rest > tenths * 10) buf[sink.pos++] = ZERO + rest - tenths * 10;
  return true;
}

/** Writes short ASCII text, such as the digits of a number. */
function writeAscii(sink: Sink, text: string): void {
  const length = text.length;
  let pos = sink.pos;
  reserve(sink, length);
  const buf = sink.buf;
  for (let i = 0; i < length; i++) buf[pos++] = text.charCodeAt(i);
  sink.pos = pos;
}

/** Returns true for a 32-bit integer. */
export function isInt(value: unknown): value is number {
  return typeof value === 'number' && (value | 0) === value;
}
