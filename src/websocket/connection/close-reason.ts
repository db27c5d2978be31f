/** Bytes of the reason in a close frame (RFC 6455 §5.5). */
const MAX_REASON = 123;

/** Shortens a reason to the bytes that a close frame can contain, without splitting a character. */
export function cutReason(reason: string): string {
  const bytes = Buffer.from(reason);
  if (bytes.length <= MAX_REASON) return reason;
  let end = MAX_REASON;
  while (((bytes[end] as number) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
