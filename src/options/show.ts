/** A value as it may stand in a message: short, one line. */
export function show(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  if (value instanceof Promise) return 'a promise';
  if (value === undefined || /^(?:number|bigint|symbol)$/.test(typeof value)) return String(value);
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    text = undefined;
  }
  text ??= Object.prototype.toString.call(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** Values to choose from, in words: `'a', 'b' or true`. */
export function choice(values: readonly unknown[]): string {
  const texts = values.map((value) => (typeof value === 'string' ? `'${value}'` : show(value)));
  const last = texts.pop() ?? '';
  return texts.length === 0 ? last : `${texts.join(', ')} or ${last}`;
}
