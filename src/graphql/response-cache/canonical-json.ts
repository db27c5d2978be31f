/** Thrown for a value that has no JSON form, such as an uploaded file. */
export const NOT_JSON: unique symbol = Symbol('not JSON');

/**
 * Returns the JSON text of a value with sorted members, so that equal variables have equal texts.
 *
 * @throws NOT_JSON
 */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value !== 'object') {
    // `String` returns the same text for both zeros.
    if (Object.is(value, -0)) return '-0';
    if (value === undefined || typeof value === 'boolean' || Number.isFinite(value)) return String(value);
    throw NOT_JSON;
  }
  if (value === null) return 'null';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) throw NOT_JSON;
  const members = value as Readonly<Record<string, unknown>>;
  const texts = Object.keys(members)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(members[name])}`);
  return `{${texts.join()}}`;
}
