import { reserve, type Sink, writeByte } from './writer.ts';

const MINUS = 45;
const POINT = 46;
const ZERO = 48;

/** A 32-bit integer. */
export function writeInt(sink: Sink, value: number): void {
  reserve(sink, 11);
  const buf = sink.buf;
  let pos = sink.pos;
  // Not a bitwise number from here on: -2147483648 has no positive twin in 32 bits.
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

/** A finite number. */
export function writeNumber(sink: Sink, value: number): void {
  if (isInt(value)) writeInt(sink, value);
  else if (!writeDecimal(sink, value)) writeAscii(sink, String(value));
}

/**
 * A number that a decimal with two places comes to. Two decimals of up to 15 digits are never the same number, so that
 * no other one is shorter, and this is what JavaScript would write.
 */
function writeDecimal(sink: Sink, value: number): boolean {
  const hundredths = Math.round(value * 100);
  if (!isInt(hundredths) || hundredths / 100 !== value) return false;
  const whole = Math.trunc(value);
  const rest = Math.abs(hundredths - whole * 100);
  // The sign of -0.5 is not in its whole part.
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

/** Short ASCII text, such as a number's. */
function writeAscii(sink: Sink, text: string): void {
  const length = text.length;
  let pos = sink.pos;
  reserve(sink, length);
  const buf = sink.buf;
  for (let i = 0; i < length; i++) buf[pos++] = text.charCodeAt(i);
  sink.pos = pos;
}

/** True for a 32-bit integer. */
export function isInt(value: unknown): value is number {
  return typeof value === 'number' && (value | 0) === value;
}
