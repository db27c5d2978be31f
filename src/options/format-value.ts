/** Characters in which the password of a URL is searched. */
const MAX_SEARCHED = 1000;

/** Formats a value for an error message: one line of at most 80 characters. */
export function formatValue(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  if (value instanceof Promise) return 'a promise';
  if (value === undefined || /^(?:number|bigint|symbol)$/.test(typeof value)) return String(value);
  let text: string | undefined;
  try {
    // JSON has no patterns, and would show them as {}.
    text = JSON.stringify(value, (_key, member: unknown) =>
      member instanceof RegExp ? String(member) : member,
    );
  } catch {
    text = undefined;
  }
  text ??= Object.prototype.toString.call(value);
  // The password of a URL must not reach a log. The pattern takes too long for a long text, which clients may send.
  text = text.slice(0, MAX_SEARCHED).replace(/(:\/\/[^/@"]*:).*@/, '$1***@');
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** Formats a list of accepted values: `'a', 'b' or true`. */
export function formatChoices(values: readonly unknown[]): string {
  const texts = values.map((value) => (typeof value === 'string' ? `'${value}'` : formatValue(value)));
  const last = texts.pop() ?? '';
  return texts.length === 0 ? last : `${texts.join(', ')} or ${last}`;
}
